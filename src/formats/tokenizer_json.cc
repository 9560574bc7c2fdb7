#include "formats/tokenizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "formats/printable.h"
#include "formats/tokenizer_json_steps.h"

namespace kvasir::formats {

const std::string_view kByteLevelRegex =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

using base::ErrorCode;
using base::Result;

// Fills a TokenizerJson from its document.
class Reader {
 public:
  explicit Reader(TokenizerJson& out) : out_(out), at_(out.document.name(), "") {}

  Result<void> Read() {
    const JsonNode root = out_.document.root();
    if (!root.is_object()) return at_.Wrong("the file is {}, not an object", root.Text());
    if (const auto version = root.Find("version"); version && version->AsString() != "1.0") {
      return at_.Wrong("version is {}; read is '1.0'", version->Text());
    }
    const auto model = root.Find("model");
    if (!model || !model->is_object()) return at_.Wrong("model, an object, is missing");
    KV_TRY(ReadModel(*model));
    KV_TRY(ReadAdded(root.Find("added_tokens")));
    KV_TRY(out_.normalizer, ReadNormalizer(at_.Of("normalizer"), root.Find("normalizer")));
    KV_TRY(out_.word_regex, ReadWordRegex(at_.Of("pre_tokenizer"), root.Find("pre_tokenizer")));
    KV_TRY(CheckDecoder(at_.Of("decoder"), root.Find("decoder"), out_.word_regex.has_value()));
    KV_TRY(const auto frame, ReadFrame(at_.Of("post_processor"), root.Find("post_processor")));
    KV_TRY(out_.first, IdOf(frame.first));
    KV_TRY(out_.last, IdOf(frame.last));
    return base::Success();
  }

 private:
  Result<void> ReadModel(const JsonNode& model) {
    const JsonPlace at = at_.Of("model");
    for (const JsonItem& item : model.items()) {
      const auto& [key, value] = item;
      if (key == "type") {
        if (value.AsString() != "BPE") return at.Wrong("type is {}; read is 'BPE'", value.Text());
      } else if (key == "vocab") {
        KV_TRY(ReadVocabulary(at, value));
      } else if (key == "merges") {
        KV_TRY(ReadMerges(at, value));
      } else if (key == "unk_token") {
        out_.unknown = value.AsString();
        if (!out_.unknown && !value.is_null()) return at.Wrong("unk_token is {}", value.Text());
      } else if (key == "byte_fallback" || key == "ignore_merges") {
        const auto flag = value.AsBool();
        if (!flag) return at.Wrong("{} is {}; allowed are true and false", key, value.Text());
        (key == "byte_fallback" ? out_.byte_fallback : out_.ignore_merges) = *flag;
      } else if (key == "continuing_subword_prefix" || key == "end_of_word_suffix") {
        if (!value.is_null() && value.AsString() != "") {
          return at.Wrong("{} is {}; only an empty one is supported", key, value.Text());
        }
      } else if (key == "dropout") {
        if (!value.is_null() && value.AsDouble() != 0.0) {
          return at.Wrong("dropout is {}; only null is supported", value.Text());
        }
      } else if (key != "fuse_unk") {
        return at.Wrong("{} is a setting that is not supported", Quoted(key));
      }
    }
    if (out_.tokens.empty()) return at.Wrong("vocab, an object of ids by token, is missing");
    return base::Success();
  }

  Result<void> ReadVocabulary(const JsonPlace& at, const JsonNode& vocab) {
    if (!vocab.is_object()) return at.Wrong("vocab is {}, not an object", vocab.Text());
    for (const JsonItem& item : vocab.items()) {
      KV_TRY(const auto id, ReadId(at, item.key, item.value));
      out_.tokens.push_back({id, item.key});
    }
    const auto by_id = [](const JsonToken& a, const JsonToken& b) { return a.id < b.id; };
    std::sort(out_.tokens.begin(), out_.tokens.end(), by_id);
    const auto twice =
        std::adjacent_find(out_.tokens.begin(), out_.tokens.end(),
                           [](const auto& a, const auto& b) { return a.id == b.id; });
    if (twice == out_.tokens.end()) return base::Success();
    return at.Wrong("tokens {} and {} have one id, {}", Quoted(twice->text),
                    Quoted((twice + 1)->text), twice->id);
  }

  static Result<std::uint32_t> ReadId(const JsonPlace& at, std::string_view token,
                                      const std::optional<JsonNode>& node) {
    const auto id = node ? node->AsUint() : std::nullopt;
    if (id && *id <= std::numeric_limits<std::int32_t>::max()) {
      return static_cast<std::uint32_t>(*id);
    }
    return at.Wrong("the id of token {} is {}; allowed are 0 to {}", Quoted(token),
                    node ? node->Text() : "missing", std::numeric_limits<std::int32_t>::max());
  }

  Result<void> ReadMerges(const JsonPlace& at, const JsonNode& merges) {
    if (!merges.is_array()) return at.Wrong("merges is {}, not an array", merges.Text());
    for (const JsonItem& item : merges.items()) {
      std::optional<std::string_view> left, right;
      if (const auto text = item.value.AsString()) {
        const std::size_t blank = text->find(' ');
        left = text->substr(0, blank);
        right = blank == text->npos ? "" : text->substr(blank + 1);
      } else {
        std::size_t count = 0;
        for (const JsonItem& part : item.value.items()) {
          (count == 0 ? left : right) = part.value.AsString();
          if (++count > 2) right.reset();
        }
      }
      if (!left || !right || left->empty() || right->empty()) {
        return at.Wrong("merge {} is {}; it must be two tokens", out_.merges.size(),
                        item.value.Text());
      }
      out_.merges.emplace_back(*left, *right);
    }
    return base::Success();
  }

  Result<void> ReadAdded(const std::optional<JsonNode>& added) {
    if (!added || added->is_null()) return base::Success();
    const JsonPlace at = at_.Of("added_tokens");
    if (!added->is_array()) return at.Wrong("it is {}, not an array", added->Text());
    for (const JsonItem& item : added->items()) {
      KV_TRY(const auto token, ReadAddedToken(at, item.value));
      out_.added.push_back(token);
    }
    std::sort(out_.added.begin(), out_.added.end(),
              [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
    return CheckAdded(at);
  }

  // Among themselves and against the vocabulary, one text has one id, and one id one text.
  Result<void> CheckAdded(const JsonPlace& at) const {
    std::unordered_map<std::string_view, std::uint32_t> ids;
    if (!out_.added.empty()) {
      for (const JsonToken& token : out_.tokens) ids.emplace(token.text, token.id);
    }
    for (std::size_t i = 0; i < out_.added.size(); ++i) {
      const AddedToken& token = out_.added[i];
      const auto same_text = ids.emplace(token.text, token.id).first;
      if (same_text->second != token.id) {
        return at.Wrong("token {} has the ids {} and {}", Quoted(token.text), same_text->second,
                        token.id);
      }
      const JsonToken* same_id = Find(token.id);
      if (same_id != nullptr && same_id->text != token.text) {
        return at.Wrong("token {} has id {}, which is {} in the vocabulary", Quoted(token.text),
                        token.id, Quoted(same_id->text));
      }
      if (i > 0 && out_.added[i - 1].id == token.id) {
        return at.Wrong("a token with id {} is added twice", token.id);
      }
    }
    return base::Success();
  }

  Result<AddedToken> ReadAddedToken(const JsonPlace& at, const JsonNode& node) const {
    AddedToken token;
    const auto content = node.Find("content");
    const auto text = content ? content->AsString() : std::nullopt;
    if (!text || text->empty()) return at.Wrong("a token has no content");
    token.text = *text;
    KV_TRY(token.id, ReadId(at, token.text, node.Find("id")));
    const auto flag = [&](std::string_view key) {
      const auto value = node.Find(key);
      return value && value->AsBool().value_or(false);
    };
    token.special = flag("special");
    token.normalized = flag("normalized");
    for (const std::string_view key : {"single_word", "lstrip", "rstrip"}) {
      // Special ones are never looked for in a text here.
      if (!token.special && flag(key)) {
        return at.Wrong("{} of token {} is true; only false is supported", key, Quoted(token.text));
      }
    }
    return token;
  }

  const JsonToken* Find(std::uint32_t id) const {
    const auto found =
        std::lower_bound(out_.tokens.begin(), out_.tokens.end(), id,
                         [](const JsonToken& token, std::uint32_t i) { return token.id < i; });
    return found != out_.tokens.end() && found->id == id ? &*found : nullptr;
  }

  // The id of a token that a template names.
  Result<std::optional<std::uint32_t>> IdOf(std::optional<std::string_view> text) const {
    if (!text) return std::optional<std::uint32_t>();
    for (const AddedToken& token : out_.added) {
      if (token.text == *text) return std::optional(token.id);
    }
    for (const JsonToken& token : out_.tokens) {
      if (token.text == *text) return std::optional(token.id);
    }
    return at_.Of("post_processor").Wrong("it adds {}, which is no token", Quoted(*text));
  }

  TokenizerJson& out_;
  JsonPlace at_;
};

}  // namespace

Result<TokenizerJson> ParseTokenizerJson(std::string_view text, const std::string& name) {
  KV_TRY(auto document, JsonDocument::Parse(text, name));
  TokenizerJson out{std::move(document), {}, {}, {}, {}, false, false, {}, {}, {}, {}};
  KV_TRY(Reader(out).Read());
  return out;
}

Result<TokenizerJson> ReadTokenizerJson(base::Env& env, const std::string& path) {
  KV_TRY(const auto file, env.Map(path));
  return ParseTokenizerJson(file->text(), path);
}

}  // namespace kvasir::formats
