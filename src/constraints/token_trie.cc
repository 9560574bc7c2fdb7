#include "constraints/token_trie.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/utf8.h"

namespace kvasir::constraints {

using base::TokenId;

namespace {

// Longer tokens are not taken for plain ones.
constexpr std::size_t kMostPlainCharacters = 64;

// The characters of a text, if all of them are plain and they are not too many.
std::optional<std::size_t> PlainLength(std::string_view bytes) {
  std::size_t characters = 0;
  for (; !bytes.empty(); ++characters) {
    const base::Utf8Step step = base::DecodeUtf8(bytes);
    if (characters == kMostPlainCharacters || step.status != base::Utf8Status::kOk ||
        !TokenTrie::PlainCharacters().Contains(step.code_point)) {
      return std::nullopt;
    }
    bytes.remove_prefix(step.bytes);
  }
  return characters;
}

}  // namespace

const CodePointSet& TokenTrie::PlainCharacters() {
  static const CodePointSet plain =
      CodePointSet({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}, {0x7F, 0x9F}}).Complement();
  return plain;
}

TokenTrie::TokenTrie(const tokenizer::Vocabulary& vocabulary) {
  std::vector<TokenId> all, others;
  std::vector<std::vector<TokenId>> plain(1);  // By characters.
  offsets_.push_back(0);
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view bytes = vocabulary.Bytes(id);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    offsets_.push_back(static_cast<std::uint32_t>(bytes_.size()));
    if (bytes.empty()) continue;
    all.push_back(id);
    if (const auto characters = PlainLength(bytes)) {
      if (*characters >= plain.size()) plain.resize(*characters + 1);
      plain[*characters].push_back(id);
    } else {
      others.push_back(id);
    }
  }
  base::TokenMask up_to(vocabulary.size());
  for (const std::vector<TokenId>& tokens : plain) {
    for (const TokenId id : tokens) up_to.Allow(id);
    plain_.push_back(up_to);
  }
  all_ = Build(std::move(all));
  others_ = Build(std::move(others));
}

TokenTrie::Tree TokenTrie::Build(std::vector<TokenId> tokens) {
  std::sort(tokens.begin(), tokens.end(), [&](TokenId a, TokenId b) {
    const auto x = Bytes(a), y = Bytes(b);
    if (std::equal(x.begin(), x.end(), y.begin(), y.end())) return a < b;
    return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
  });
  Tree tree;
  std::vector<std::uint32_t> path;  // The nodes from the root to the last one added.
  std::span<const std::uint8_t> last;
  const auto here = [&] { return static_cast<std::uint32_t>(tree.nodes.size()); };
  for (std::uint32_t i = 0; i < tokens.size(); ++i) {
    const auto bytes = Bytes(tokens[i]);
    const auto common = std::mismatch(bytes.begin(), bytes.end(), last.begin(), last.end()).first;
    while (path.size() > static_cast<std::size_t>(common - bytes.begin())) {
      tree.nodes[path.back()].end = here();
      path.pop_back();
    }
    while (path.size() < bytes.size()) {
      const std::uint8_t byte = bytes[path.size()];
      path.push_back(here());
      tree.nodes.push_back({0, i, static_cast<std::uint32_t>(path.size()), byte});
    }
    for (const std::uint32_t node : path) {
      const auto rest = bytes.subspan(tree.nodes[node].depth);
      const auto plain = PlainLength({reinterpret_cast<const char*>(rest.data()), rest.size()});
      tree.nodes[node].plain_below = tree.nodes[node].plain_below && plain.has_value();
      plain_below_ = std::max(plain_below_, plain.value_or(0));
    }
    max_depth_ = std::max(max_depth_, tree.nodes[path.back()].depth);
    last = bytes;
  }
  for (const std::uint32_t node : path) tree.nodes[node].end = here();
  tree.nodes.push_back({here() + 1, static_cast<std::uint32_t>(tokens.size())});
  tree.tokens = std::move(tokens);
  return tree;
}

}  // namespace kvasir::constraints
