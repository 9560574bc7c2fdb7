#include "server/metrics.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

namespace kvasir::server {
namespace {

TEST(MetricsText, IsWhatPrometheusReads) {
  ServerCounts server;
  server.requests[{"chat", 200}] = 3;
  server.requests[{"none", 404}] = 1;
  server.answer_us.Add(1500);
  engine::Metrics engine;
  engine.generated_tokens = 7;
  engine.finished[0] = 2;
  const std::string text = MetricsText(server, engine);
  EXPECT_NE(text.find("kvasir_http_requests_total{endpoint=\"chat\",status=\"200\"} 3\n"),
            std::string::npos);
  EXPECT_NE(text.find("kvasir_generated_tokens_total 7\n"), std::string::npos);
  EXPECT_NE(text.find("kvasir_choices_finished_total{reason=\"stop\"} 2\n"), std::string::npos);
  EXPECT_NE(text.find("kvasir_answer_seconds_bucket{le=\"0.001\"} 0\n"), std::string::npos);
  EXPECT_NE(text.find("kvasir_answer_seconds_bucket{le=\"0.0025\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("kvasir_answer_seconds_bucket{le=\"+Inf\"} 1\n"), std::string::npos);
  // Each name has one HELP and one TYPE, before its lines; every line is a name and a number.
  std::istringstream lines(text);
  std::set<std::string> types;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, second, third;
    words >> first >> second >> third;
    if (first == "#") {
      if (second == "TYPE") {
        EXPECT_TRUE(types.insert(third).second) << line;
      }
      continue;
    }
    std::string name = first.substr(0, first.find('{'));
    for (const char* suffix : {"_bucket", "_sum", "_count"}) {
      if (name.ends_with(suffix) && !types.contains(name)) {
        name.resize(name.size() - std::string(suffix).size());
      }
    }
    EXPECT_TRUE(types.contains(name)) << line;
    EXPECT_NO_THROW(std::stod(second)) << line;
  }
}

TEST(MetricsText, TellsOfAStoreWhereThereIsOne) {
  engine::Metrics engine;
  engine.restored_tokens = 32;
  EXPECT_EQ(MetricsText({}, engine).find("kvasir_store_"), std::string::npos);
  engine.store = kvcache::BlockStoreStats{.hits = 5, .misses = 6, .refused = 7, .open = false};
  const std::string text = MetricsText({}, engine);
  for (const char* line :
       {"kvasir_restored_tokens_total 32\n", "kvasir_store_up 0\n",
        "kvasir_store_hit_blocks_total 5\n", "kvasir_store_missed_blocks_total 6\n",
        "kvasir_store_refused_blocks_total 7\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace kvasir::server
