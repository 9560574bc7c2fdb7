#include "eval/verify_runner.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "eval/sequence_logits.h"

namespace kvasir::eval {

void RowComparer::Compare(VerifyAxis axis, const PlainSequence& plain, std::size_t position,
                          std::span<const float> row) {
  const std::span<const float> expected = plain.Row(position, vocab_);
  if (expected.empty()) return;
  const VerifyAxis arranged_as = axis;
  axis = count_as_.value_or(axis);
  AxisCount& count = report_.axes[static_cast<std::size_t>(axis)];
  ++count.comparisons;
  if (std::memcmp(expected.data(), row.data(), vocab_ * sizeof(float)) == 0) return;
  ++count.mismatches;
  if (!report_.first_mismatch.empty()) return;
  std::size_t i = 0;
  while (std::bit_cast<std::uint32_t>(expected[i]) == std::bit_cast<std::uint32_t>(row[i])) ++i;
  report_.first_mismatch = fmt::format(
      "axis {}, trial {}, a sequence of {} tokens, position {}: the logit of token {} is {:.9g} "
      "and not {:.9g}",
      VerifyAxisName(axis), report_.trials + 1, plain.tokens.size(), position, i, row[i],
      expected[i]);
  if (count_as_) {
    report_.first_mismatch +=
        fmt::format(" ({}, as axis {})", circumstances_, VerifyAxisName(arranged_as));
  }
}

base::ThreadTeam& TeamSet::Of(std::size_t threads) {
  std::unique_ptr<base::ThreadTeam>& team = teams_.at(threads - 1);
  if (!team) team = std::make_unique<base::ThreadTeam>(threads);
  return *team;
}

base::Result<void> VerifyRunner::Step(std::span<const Feed> feeds) {
  const std::size_t vocab = model_.shape().vocab;
  std::size_t rows_left = LogitRowsPerStep(model_.shape());
  std::size_t rows = 0;
  items_.clear();
  for (const Feed& feed : feeds) {
    const std::size_t wanted = std::min(feed.logit_rows, rows_left);
    rows_left -= wanted;
    rows += wanted;
    items_.push_back(
        {&feed.stream->cache,
         std::span(feed.stream->plain->tokens).subspan(feed.stream->done(), feed.count), wanted});
  }
  logits_.resize(std::max(logits_.size(), rows * vocab));
  KV_TRY(model_.Forward(items_, scratch_, team_, std::span(logits_).first(rows * vocab)));
  std::size_t row = 0;
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    const Stream& stream = *feeds[i].stream;
    for (std::size_t k = items_[i].logit_rows; k > 0; --k, ++row) {
      comparer_.Compare(axis_, *stream.plain, stream.done() - k,
                        std::span(logits_).subspan(row * vocab, vocab));
    }
  }
  return base::Success();
}

base::Result<void> VerifyRunner::Advance(Stream& stream, std::size_t end, RandomStream& random) {
  // Three temperaments: one step, single tokens, anything.
  const std::uint64_t temper = random.Below(3);
  while (stream.done() < end) {
    const std::size_t left = end - stream.done();
    const std::size_t count = temper == 0 ? left : temper == 1 ? 1 : random.Between(1, left);
    KV_TRY(Step({&stream, count, count}));
  }
  return base::Success();
}

base::Result<void> VerifyRunner::Pollute(Stream& stream, std::span<const base::TokenId> tokens) {
  const model::BatchItem item = {&stream.cache, tokens, 0};
  return model_.Forward({&item, 1}, scratch_, team_, {});
}

}  // namespace kvasir::eval
