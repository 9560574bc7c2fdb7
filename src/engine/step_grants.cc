#include "engine/step_grants.h"

#include <algorithm>

#include "base/check.h"

namespace kvasir::engine {
namespace {

// Sequences of one client that want more, by index, in order.
struct Claimants {
  const void* client;
  std::vector<std::size_t> sequences;
};

}  // namespace

std::vector<std::size_t> GrantTokens(std::span<const TokenWant> wants, std::size_t budget) {
  KV_CHECK(budget >= wants.size());
  std::vector<std::size_t> grants(wants.size(), 0);
  std::vector<Claimants> clients;
  for (std::size_t i = 0; i < wants.size(); ++i) {
    if (wants[i].tokens == 0) continue;
    if (wants[i].decoding) {
      grants[i] = 1;
      --budget;
    }
    if (grants[i] == wants[i].tokens) continue;
    auto of_client = std::find_if(clients.begin(), clients.end(), [&](const Claimants& other) {
      return other.client == wants[i].client;
    });
    if (of_client == clients.end()) {
      clients.push_back({wants[i].client, {}});
      of_client = clients.end() - 1;
    }
    of_client->sequences.push_back(i);
  }
  while (budget > 0 && !clients.empty()) {
    const std::size_t even = std::max<std::size_t>(1, budget / clients.size());
    for (Claimants& client : clients) {
      std::size_t part = std::min(even, budget);
      budget -= part;
      for (const std::size_t i : client.sequences) {
        const std::size_t more = std::min(part, wants[i].tokens - grants[i]);
        grants[i] += more;
        part -= more;
      }
      budget += part;
      std::erase_if(client.sequences, [&](std::size_t i) { return grants[i] == wants[i].tokens; });
    }
    std::erase_if(clients, [](const Claimants& client) { return client.sequences.empty(); });
  }
  return grants;
}

}  // namespace kvasir::engine
