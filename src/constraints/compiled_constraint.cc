#include "constraints/compiled_constraint.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "constraints/utf8_automaton.h"

namespace kvasir::constraints {
namespace {

using base::TokenId;
using base::TokenMask;

// Forced tokens that are told at once; the next ones are told when these are accepted.
constexpr std::size_t kMostForced = 256;

// Subtrees of fewer nodes are walked rather than asked about.
constexpr std::uint32_t kFewNodes = 8;

struct PlainBytes {
  Utf8Automaton utf8;
  ByteNode start = utf8.Add(TokenTrie::PlainCharacters());
};

}  // namespace

StateId CompiledConstraint::Step(StateId state, TokenId token) {
  const std::scoped_lock lock(mutex_);
  const auto bytes = trie_->Bytes(token);
  if (bytes.empty()) return kDeadState;
  for (const std::uint8_t byte : bytes) state = recognizer_.Step(state, byte);
  return state;
}

StateId CompiledConstraint::Step(StateId state, std::uint8_t byte) {
  const std::scoped_lock lock(mutex_);
  return recognizer_.Step(state, byte);
}

bool CompiledConstraint::MayEnd(StateId state) const {
  const std::scoped_lock lock(mutex_);
  return recognizer_.MayEnd(state);
}

bool CompiledConstraint::MayContinue(StateId state) const {
  const std::scoped_lock lock(mutex_);
  return recognizer_.MayContinue(state);
}

std::size_t CompiledConstraint::state_count() const {
  const std::scoped_lock lock(mutex_);
  return recognizer_.state_count();
}

base::Result<void> CompiledConstraint::Status() const {
  const std::scoped_lock lock(mutex_);
  return recognizer_.Status();
}

CompiledConstraint::PlainStep CompiledConstraint::PlainStepOf(StateId state) {
  if (state >= plain_steps_.size()) plain_steps_.resize(recognizer_.state_count());
  if (plain_steps_[state].kind != PlainStep::Kind::kUnknown) return plain_steps_[state];
  static const PlainBytes plain;
  using Place = std::pair<ByteNode, StateId>;
  std::vector<Place> places = {{plain.start, state}};
  const PlainStep mixed = {PlainStep::Kind::kMixed};
  PlainStep step;
  for (std::size_t i = 0; i < places.size() && step.kind != PlainStep::Kind::kMixed; ++i) {
    const auto [node, from] = places[i];
    for (const ByteEdge& edge : plain.utf8.edges(node)) {
      for (unsigned byte = edge.first; byte <= edge.last; ++byte) {
        const StateId next = recognizer_.Step(from, static_cast<std::uint8_t>(byte));
        const bool whole = edge.next == kWholeCharacter || next == kDeadState;
        const PlainStep here = {next == kDeadState ? PlainStep::Kind::kNone : PlainStep::Kind::kOne,
                                next};
        if (whole && step.kind == PlainStep::Kind::kUnknown) step = here;
        if (whole && (step.kind != here.kind || step.next != here.next)) step = mixed;
        if (step.kind == PlainStep::Kind::kMixed) break;
        const Place place = {edge.next, next};
        if (!whole && std::find(places.begin(), places.end(), place) == places.end()) {
          places.push_back(place);
        }
      }
    }
  }
  return plain_steps_[state] = step;
}

CompiledConstraint::PlainRun CompiledConstraint::PlainRunOf(StateId state, std::size_t most) {
  bool leaves = false;
  for (std::size_t run = 0; run < most; ++run) {
    const PlainStep step = PlainStepOf(state);
    leaves = leaves || recognizer_.MayLeave(state);
    if (step.kind != PlainStep::Kind::kOne) {
      return {.characters = run, .ends = step.kind == PlainStep::Kind::kNone && !leaves};
    }
    if (step.next == state) break;
    state = step.next;
  }
  return {.characters = most, .all = true};
}

// Whether all tokens from the node on may come, its byte having led to the state.
bool CompiledConstraint::AllBelow(const TokenTrie::Node& node, StateId state) {
  return node.plain_below && PlainRunOf(state, trie_->plain_characters_below()).all;
}

void CompiledConstraint::Walk(const TokenTrie::Tree& tree, std::uint32_t node, StateId state,
                              TokenMask& mask) {
  const std::uint32_t end = tree.nodes[node].end;
  path_[tree.nodes[node].depth - 1] = state;
  for (std::uint32_t i = node; i < end;) {
    const TokenTrie::Node& here = tree.nodes[i];
    const StateId next = recognizer_.Step(path_[here.depth - 1], here.byte);
    if (next == kDeadState) {
      i = here.end;
    } else if (here.end - i > kFewNodes && AllBelow(here, next)) {
      for (const TokenId token : tree.TokensFrom(i)) mask.Allow(token);
      i = here.end;
    } else {
      path_[here.depth] = next;
      for (const TokenId token : tree.TokensAt(i)) mask.Allow(token);
      ++i;
    }
  }
}

const CompiledConstraint::PartMask& CompiledConstraint::PartLocked(StateId part) {
  const auto known = parts_.find(part);
  if (known != parts_.end()) return known->second;
  const PlainRun run = PlainRunOf(part, trie_->plain_characters());
  const bool plain = run.characters > 0 && (run.all || run.ends);
  PartMask made = {plain ? trie_->plain(run.characters) : TokenMask(trie_->vocab_size()),
                   plain ? &trie_->others() : &trie_->all(),
                   {}};
  const TokenTrie::Tree& tree = *made.tree;
  path_[0] = part;
  left_[0] = false;
  for (std::uint32_t i = 0; i < tree.size();) {
    const TokenTrie::Node& here = tree.nodes[i];
    const StateId from = path_[here.depth - 1];
    const StateId next = recognizer_.Step(from, here.byte);
    left_[here.depth] = left_[here.depth - 1] || recognizer_.MayLeave(from);
    if (next == kDeadState) {
      if (left_[here.depth]) made.leaving.push_back(i);
      i = here.end;
    } else if (here.end - i > kFewNodes && AllBelow(here, next)) {
      for (const TokenId token : tree.TokensFrom(i)) made.within.Allow(token);
      i = here.end;
    } else {
      path_[here.depth] = next;
      for (const TokenId token : tree.TokensAt(i)) made.within.Allow(token);
      ++i;
    }
  }
  return parts_.emplace(part, std::move(made)).first->second;
}

const TokenMask& CompiledConstraint::MaskLocked(StateId state) {
  if (!recognizer_.Status()) return nothing_;
  const auto known = masks_.find(state);
  if (known != masks_.end()) return known->second;
  TokenMask mask(trie_->vocab_size());
  if ((masks_.size() + parts_.size()) * mask.words().size_bytes() > max_bytes_) {
    masks_.clear();
    parts_.clear();
  }
  path_.resize(trie_->max_depth() + 1);
  left_.resize(trie_->max_depth() + 1);
  for (const StateId part : recognizer_.Parts(state)) {
    const PartMask& of_part = PartLocked(part);
    mask.Or(of_part.within);
    for (const std::uint32_t node : of_part.leaving) {
      const TokenTrie::Node& first = of_part.tree->nodes[node];
      StateId from = state;
      const auto bytes = trie_->Bytes(of_part.tree->tokens[first.first_token]);
      for (std::uint32_t i = 0; i + 1 < first.depth; ++i) from = recognizer_.Step(from, bytes[i]);
      if (from != kDeadState) Walk(*of_part.tree, node, from, mask);
    }
  }
  // A walk that met the limit has left tokens out: no mask then, rather than a wrong one.
  if (!recognizer_.Status()) return nothing_;
  return masks_.emplace(state, std::move(mask)).first->second;
}

void CompiledConstraint::Mask(StateId state, TokenMask& mask) {
  const std::scoped_lock lock(mutex_);
  KV_CHECK(mask.size() == trie_->vocab_size());
  mask = MaskLocked(state);
}

std::optional<TokenId> CompiledConstraint::Forced(StateId state) {
  const std::scoped_lock lock(mutex_);
  if (recognizer_.MayEnd(state)) return std::nullopt;
  const TokenMask& mask = MaskLocked(state);
  if (mask.Count() != 1) return std::nullopt;
  const auto words = mask.words();
  std::size_t word = 0;
  while (words[word] == 0) ++word;
  return static_cast<TokenId>(word * TokenMask::kWordBits +
                              static_cast<std::size_t>(std::countr_zero(words[word])));
}

bool GrammarMatcher::Accept(TokenId token) {
  if (token >= constraint_->vocab_size()) return false;
  const StateId next = constraint_->Step(history_.back(), token);
  if (next == kDeadState) return false;
  history_.push_back(next);
  return true;
}

void GrammarMatcher::Mask(TokenMask& mask) const { constraint_->Mask(history_.back(), mask); }

void GrammarMatcher::Rollback(std::size_t n) {
  KV_CHECK(n <= accepted_tokens());
  history_.resize(history_.size() - n);
}

std::vector<TokenId> GrammarMatcher::ForcedTokens() const {
  std::vector<TokenId> tokens;
  for (StateId state = history_.back(); tokens.size() < kMostForced;) {
    const std::optional<TokenId> token = constraint_->Forced(state);
    if (!token) break;
    tokens.push_back(*token);
    state = constraint_->Step(state, *token);
  }
  return tokens;
}

}  // namespace kvasir::constraints
