// Several trainers that share their steps, as processes would: the same bits as one alone.
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "training/peers.h"
#include "training/trainer.h"

namespace kvasir::training {
namespace {

// A mailbox for every pair of ranks; senders wait until they are read.
class Exchange {
 public:
  explicit Exchange(std::size_t count) : boxes_(count * count), count_(count) {}
  std::size_t count() const { return count_; }

  void Put(std::size_t from, std::size_t to, std::span<const std::byte> bytes) {
    std::unique_lock lock(mutex_);
    Box& box = boxes_[from * count_ + to];
    changed_.wait(lock, [&] { return !box.full; });
    box.bytes.assign(bytes.begin(), bytes.end());
    box.full = true;
    changed_.notify_all();
  }
  void Take(std::size_t from, std::size_t to, std::span<std::byte> bytes) {
    std::unique_lock lock(mutex_);
    Box& box = boxes_[from * count_ + to];
    changed_.wait(lock, [&] { return box.full; });
    ASSERT_EQ(box.bytes.size(), bytes.size());
    std::memcpy(bytes.data(), box.bytes.data(), bytes.size());
    box.full = false;
    changed_.notify_all();
  }

 private:
  struct Box {
    std::vector<std::byte> bytes;
    bool full = false;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Box> boxes_;
  const std::size_t count_;
};

class ThreadPeers : public Peers {
 public:
  ThreadPeers(Exchange& exchange, std::size_t rank) : exchange_(exchange), rank_(rank) {}
  std::size_t rank() const override { return rank_; }
  std::size_t count() const override { return exchange_.count(); }
  base::Result<void> Send(std::size_t to, std::span<const std::byte> bytes) override {
    exchange_.Put(rank_, to, bytes);
    return base::Success();
  }
  base::Result<void> Receive(std::size_t from, std::span<std::byte> bytes) override {
    exchange_.Take(from, rank_, bytes);
    return base::Success();
  }
  base::Result<void> Broadcast(std::size_t from, std::span<std::byte> bytes) override {
    if (from != rank_) return Receive(from, bytes);
    for (std::size_t to = 0; to < count(); ++to) {
      if (to != rank_) {
        KV_TRY(Send(to, bytes));
      }
    }
    return base::Success();
  }
  void Finish() override {}

 private:
  Exchange& exchange_;
  const std::size_t rank_;
};

// A peer that is lost at once.
class LostPeers : public ThreadPeers {
 public:
  using ThreadPeers::ThreadPeers;
  base::Result<void> Send(std::size_t, std::span<const std::byte>) override {
    return base::MakeError(base::ErrorCode::kIo, "gone");
  }
};

class TrainerPeersTest : public testing::TestWithParam<bool> {
 protected:
  TrainerPeersTest() : text_(300) {
    for (std::size_t i = 0; i < text_.size(); ++i) {
      text_[i] = static_cast<base::TokenId>(i * i % 19 + i % 4);
    }
    config_.layers = 2;
    config_.heads = 2;
    config_.embedding = 12;
    config_.feed_forward = 20;
    config_.context = 10;
    config_.vocab = 23;
    config_.tied_head = GetParam();
    options_.batch = 6;
    options_.micro_batch = 2;
    options_.shards = 5;
    options_.dropout = 0.1;
    options_.learning_rate = 0.01;
    options_.warmup = 2;
  }
  // Parameters and losses after a few steps, by this rank.
  std::vector<double> Train(Peers* peers) {
    base::ThreadTeam team(1);
    auto trainer = Trainer::Make(config_, options_, text_, team).value();
    if (peers) {
      EXPECT_TRUE(trainer->Join(*peers).has_value());
    }
    std::vector<double> numbers;
    for (int i = 0; i < 4; ++i) {
      const StepReport report = trainer->Step().value();
      numbers.push_back(report.loss);
      numbers.push_back(report.gradient_norm);
    }
    numbers.insert(numbers.end(), trainer->parameters().begin(), trainer->parameters().end());
    return numbers;
  }

  std::vector<base::TokenId> text_;
  model::Gpt2Config config_;
  TrainOptions options_;
};
INSTANTIATE_TEST_SUITE_P(Head, TrainerPeersTest, testing::Bool(), [](const auto& param_info) {
  return param_info.param ? "tied" : "untied";
});

TEST_P(TrainerPeersTest, AnyNumberOfThemHasTheBitsOfOne) {
  const std::vector<double> alone = Train(nullptr);
  for (std::size_t count = 1; count <= 5; ++count) {
    Exchange exchange(count);
    std::vector<std::vector<double>> numbers(count);
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < count; ++rank) {
      threads.emplace_back([&, rank] {
        ThreadPeers peers(exchange, rank);
        numbers[rank] = Train(&peers);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t rank = 0; rank < count; ++rank) {
      EXPECT_TRUE(numbers[rank] == alone) << "rank " << rank << " of " << count;
    }
  }
}

TEST_P(TrainerPeersTest, MoreOfThemThanShardsAreRefused) {
  Exchange exchange(6);
  ThreadPeers peers(exchange, 0);
  base::ThreadTeam team(1);
  auto trainer = Trainer::Make(config_, options_, text_, team).value();
  const auto refused = trainer->Join(peers);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, base::ErrorCode::kUsage);
  EXPECT_NE(refused.error().message.find("--shards 5"), std::string::npos);
}

TEST_P(TrainerPeersTest, ALostPeerEndsTheStep) {
  Exchange exchange(2);
  LostPeers peers(exchange, 0);
  base::ThreadTeam team(1);
  auto trainer = Trainer::Make(config_, options_, text_, team).value();
  ASSERT_TRUE(trainer->Join(peers).has_value());
  const std::vector<float> before(trainer->parameters().begin(), trainer->parameters().end());
  const auto step = trainer->Step();
  ASSERT_FALSE(step.has_value());
  EXPECT_EQ(step.error().code, base::ErrorCode::kIo);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), trainer->parameters().begin()));
  EXPECT_EQ(trainer->steps_done(), 0u);
}

}  // namespace
}  // namespace kvasir::training
