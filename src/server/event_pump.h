// EventPump: hands the engine's events to their answers on the network's thread.
#ifndef KVASIR_SERVER_EVENT_PUMP_H_
#define KVASIR_SERVER_EVENT_PUMP_H_

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <vector>

#include "server/answer.h"

namespace kvasir::server {

// Of each batch of events every answer takes its own first, then each that took any is told once,
// so that a client is written to once.
//
// Where steps are short and clients are many, a write for every token would take more of the
// machine than computing it, and stop the engine's threads in the middle of their work. So after n
// clients were told, which took t of the processor, the next ones are told min(n, 31)·t later: a
// thousand texts leave the network a thirty-second of a core and get a few tokens at a time; a lone
// text, or steps of many milliseconds, wait for nothing. First tokens and ends never wait.
//
// Single-threaded, of the network's thread, but for queue()'s other half. Borrows io.
class EventPump {
 public:
  explicit EventPump(boost::asio::io_context& io);

  // Shared with whoever tells it, who may hold it for longer. No event may cross once the pump is
  // gone.
  const std::shared_ptr<EventQueue>& queue() const { return queue_; }

 private:
  using Clock = std::chrono::steady_clock;

  // Takes what has crossed, now or when it is time.
  void OnWake(bool urgent);
  void Pump();
  // Lets the answers take their events. Returns those with an urgent one.
  std::vector<std::shared_ptr<Answer>> Take();
  void PumpLater();

  boost::asio::io_context& io_;
  boost::asio::steady_timer pause_;
  bool pausing_ = false;                               // The timer runs.
  Clock::time_point next_ = Clock::time_point::min();  // All are told then, not before.
  std::chrono::nanoseconds worked_{0};                 // Of the processor, since all were told.
  std::vector<EngineEvent> taken_;                     // Empty between batches.
  std::vector<std::shared_ptr<Answer>> changed_;       // To be told.
  std::shared_ptr<EventQueue> queue_;
};

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_EVENT_PUMP_H_
