#include "model/vocabulary_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tokenizer/character_vocabulary.h"
#include "tokenizer/pre_tokenizer.h"

namespace kvasir::model {
namespace {

using base::ErrorCode;
using formats::GgufWriter;
using ::testing::HasSubstr;
using tokenizer::PreTokenizer;
using tokenizer::VocabularyKind;
using tokenizer::VocabularySpec;

base::Result<VocabularySpec> Read(const GgufWriter& writer) {
  const auto bytes = writer.Encode().value();
  return ReadVocabulary(formats::GgufFile::Parse(bytes, "test").value());
}

void SetStrings(GgufWriter& writer, const char* key, const std::vector<std::string>& values) {
  writer.Set(key, std::span<const std::string>(values));
}

GgufWriter Pieces(const char* model, const std::vector<std::string>& tokens) {
  GgufWriter writer;
  writer.Set("tokenizer.ggml.model", model);
  SetStrings(writer, "tokenizer.ggml.tokens", tokens);
  return writer;
}
GgufWriter ByteLevel() {
  GgufWriter writer = Pieces("gpt2", {"a", "b", "ab"});
  SetStrings(writer, "tokenizer.ggml.merges", {"a b"});
  return writer;
}

bool Same(const VocabularySpec& a, const VocabularySpec& b) {
  return a.kind == b.kind && a.pieces == b.pieces && a.scores == b.scores && a.types == b.types &&
         a.merges == b.merges && a.pre == b.pre && a.bos == b.bos && a.eos == b.eos &&
         a.eot == b.eot && a.unk == b.unk && a.pad == b.pad && a.add_bos == b.add_bos &&
         a.add_eos == b.add_eos && a.add_space_prefix == b.add_space_prefix &&
         a.untrained == b.untrained;
}

TEST(VocabularyReader, RoundTripsEveryKind) {
  VocabularySpec characters = tokenizer::BuildCharacterVocabulary("春风 a").value();
  VocabularySpec pieces = characters;
  pieces.pieces.push_back("▁ab");
  pieces.scores.push_back(-2.5F);
  pieces.types.push_back(tokenizer::TokenType::kNormal);
  pieces.eot = 1;
  pieces.pad = 0;
  pieces.untrained = {260, 259};
  pieces.add_bos = pieces.add_space_prefix = pieces.add_eos = true;
  std::vector<VocabularySpec> specs = {characters, pieces};
  for (const PreTokenizer pre :
       {PreTokenizer::kGpt2, PreTokenizer::kLlama3, PreTokenizer::kQwen2}) {
    VocabularySpec bytes;
    bytes.kind = VocabularyKind::kByteLevel;
    bytes.pieces = {"a", "b", "ab", "<|end|>"};
    bytes.scores.assign(4, 0);
    bytes.types.assign(4, tokenizer::TokenType::kNormal);
    bytes.types[3] = tokenizer::TokenType::kControl;
    bytes.merges = {"a b"};
    bytes.pre = pre;
    bytes.eos = 3;
    specs.push_back(bytes);
  }
  for (const VocabularySpec& spec : specs) {
    GgufWriter writer;
    WriteVocabulary(spec, writer);
    EXPECT_TRUE(Same(Read(writer).value(), spec));
  }
}

TEST(VocabularyReader, RefusesUntrainedTokensThatAreNoIds) {
  for (const std::int32_t id : {-1, std::numeric_limits<std::int32_t>::min()}) {
    GgufWriter writer = Pieces("llama", {"<s>", "ab"});
    const std::int32_t ids[] = {1, id};
    writer.Set("kvasir.tokenizer.untrained", std::span<const std::int32_t>(ids));
    EXPECT_THAT(Read(writer).error().message,
                HasSubstr("kvasir.tokenizer.untrained holds " + std::to_string(id)));
  }
}

// What a file leaves open.
TEST(VocabularyReader, Defaults) {
  GgufWriter pieces = Pieces("llama", {"<s>", "ab"});
  VocabularySpec spec = Read(pieces).value();
  EXPECT_EQ(spec.scores, (std::vector<float>{0, 0}));
  EXPECT_EQ(spec.types.size(), 2u);
  EXPECT_FALSE(spec.add_bos);  // There is none.
  EXPECT_TRUE(spec.add_space_prefix);
  pieces.Set("tokenizer.ggml.bos_token_id", std::uint32_t{0});
  EXPECT_TRUE(Read(pieces).value().add_bos);
  pieces.Set("tokenizer.ggml.add_bos_token", false);
  pieces.Set("tokenizer.ggml.add_space_prefix", false);
  EXPECT_FALSE(Read(pieces).value().add_bos);
  EXPECT_FALSE(Read(pieces).value().add_space_prefix);
  // Characters: our own files, which say so, and no space but where one was.
  GgufWriter characters = Pieces("llama", {"a", "b"});
  characters.Set("tokenizer.ggml.bos_token_id", std::uint32_t{0});
  EXPECT_FALSE(Read(characters).value().add_bos);
  EXPECT_FALSE(Read(characters).value().add_space_prefix);
  for (const char* pre : {"llama-bpe", "llama3", "qwen2", "gpt-2"}) {
    GgufWriter bytes = ByteLevel();
    bytes.Set("tokenizer.ggml.pre", pre);
    bytes.Set("tokenizer.ggml.bos_token_id", std::uint32_t{0});
    bytes.Set("tokenizer.ggml.add_space_prefix", true);  // Means nothing there.
    spec = Read(bytes).value();
    EXPECT_EQ(spec.add_bos, std::string_view(pre).starts_with("llama")) << pre;
    EXPECT_FALSE(spec.add_space_prefix);
  }
}

TEST(VocabularyReader, PreTokenizers) {
  const auto pre = [](const char* name) {
    GgufWriter writer = ByteLevel();
    writer.Set("tokenizer.ggml.pre", name);
    return Read(writer);
  };
  EXPECT_EQ(pre("gpt-2").value().pre, PreTokenizer::kGpt2);
  EXPECT_EQ(pre("llama3").value().pre, PreTokenizer::kLlama3);
  EXPECT_EQ(pre("qwen2").value().pre, PreTokenizer::kQwen2);
  for (const char* unknown : {"falcon", "default", ""}) {
    const auto spec = pre(unknown);
    ASSERT_FALSE(spec.has_value());
    EXPECT_EQ(spec.error().code, ErrorCode::kBadData);
    EXPECT_EQ(spec.error().message, "tokenizer.ggml.pre is '" + std::string(unknown) +
                                        "'; supported are gpt-2, llama-bpe and qwen2");
  }
  GgufWriter without = ByteLevel();
  EXPECT_THAT(Read(without).error().message, HasSubstr("tokenizer.ggml.pre is missing"));
  without.Set("general.architecture", "llama");
  EXPECT_THAT(Read(without).error().message, HasSubstr("tokenizer.ggml.pre is missing"));
  without.Set("general.architecture", "gpt2");
  EXPECT_EQ(Read(without).value().pre, PreTokenizer::kGpt2);
}

TEST(VocabularyReader, RefusesBadMetadata) {
  GgufWriter unknown = Pieces("rwkv", {"a"});
  EXPECT_THAT(Read(unknown).error().message, HasSubstr("tokenizer.ggml.model is 'rwkv'"));
  GgufWriter no_merges = Pieces("gpt2", {"a"});
  no_merges.Set("tokenizer.ggml.pre", "gpt-2");
  EXPECT_THAT(Read(no_merges).error().message, HasSubstr("tokenizer.ggml.merges"));
  GgufWriter id = Pieces("llama", {"a"});
  id.Set("tokenizer.ggml.eot_token_id", std::uint64_t{1} << 40);
  EXPECT_THAT(Read(id).error().message, HasSubstr("tokenizer.ggml.eot_token_id is 1099511627776"));
  GgufWriter flag = Pieces("llama", {"a"});
  flag.Set("tokenizer.ggml.add_bos_token", "yes");
  EXPECT_THAT(Read(flag).error().message, HasSubstr("tokenizer.ggml.add_bos_token"));
}

}  // namespace
}  // namespace kvasir::model
