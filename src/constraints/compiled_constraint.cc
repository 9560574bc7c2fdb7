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

// Whether every plain character leads from the state back to it.
bool LoopsOnPlain(Recognizer& recognizer, StateId state) {
  struct Plain {
    Utf8Automaton utf8;
    ByteNode start = utf8.Add(TokenTrie::PlainCharacters());
  };
  static const Plain plain;
  using Place = std::pair<ByteNode, StateId>;
  std::vector<Place> places = {{plain.start, state}};
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto [node, from] = places[i];
    for (const ByteEdge& edge : plain.utf8.edges(node)) {
      for (unsigned byte = edge.first; byte <= edge.last; ++byte) {
        const StateId next = recognizer.Step(from, static_cast<std::uint8_t>(byte));
        if (edge.next == kWholeCharacter ? next != state : next == kDeadState) return false;
        const Place place = {edge.next, next};
        if (edge.next != kWholeCharacter &&
            std::find(places.begin(), places.end(), place) == places.end()) {
          places.push_back(place);
        }
      }
    }
  }
  return true;
}

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

bool CompiledConstraint::Loops(StateId state) {
  const auto known = loops_.find(state);
  if (known != loops_.end()) return known->second;
  const bool loops = LoopsOnPlain(recognizer_, state);
  loops_.emplace(state, loops);
  return loops;
}

TokenMask CompiledConstraint::WalkTrie(StateId state) {
  const bool plain_loops = Loops(state);
  TokenMask mask = plain_loops ? trie_->plain() : TokenMask(trie_->vocab_size());
  path_.resize(trie_->max_depth() + 1);
  path_[0] = state;
  const auto& [nodes, tokens] = plain_loops ? trie_->others() : trie_->all();
  for (std::uint32_t i = 0; i < nodes.size();) {
    const TokenTrie::Node& node = nodes[i];
    const StateId next = recognizer_.Step(path_[node.depth - 1], node.byte);
    if (next == kDeadState) {
      i = node.end;
      continue;
    }
    if (node.plain_below && Loops(next)) {
      for (std::uint32_t t = node.first_token; t < node.below; ++t) mask.Allow(tokens[t]);
      i = node.end;
      continue;
    }
    path_[node.depth] = next;
    for (std::uint32_t t = node.first_token; t < node.last_token; ++t) mask.Allow(tokens[t]);
    ++i;
  }
  return mask;
}

const TokenMask& CompiledConstraint::MaskLocked(StateId state) {
  auto known = masks_.find(state);
  if (known == masks_.end()) known = masks_.emplace(state, WalkTrie(state)).first;
  // A walk that met the limit has left tokens out: no mask then, rather than a wrong one.
  if (!recognizer_.Status()) known->second.ClearAll();
  return known->second;
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
