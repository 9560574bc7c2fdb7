#include "corpus/simplifier.h"

#include <exception>
#include <opencc/SimpleConverter.hpp>
#include <utility>

#include "base/utf8.h"

namespace kvasir::corpus {
namespace {

// OpenCC's messages may have several lines; an Error has one.
std::string OneLine(std::string message) {
  for (char& c : message) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return base::ReplaceInvalidUtf8(message);
}

}  // namespace

Simplifier::Simplifier(std::unique_ptr<opencc::SimpleConverter> converter)
    : converter_(std::move(converter)) {}
Simplifier::Simplifier(Simplifier&&) noexcept = default;
Simplifier& Simplifier::operator=(Simplifier&&) noexcept = default;
Simplifier::~Simplifier() = default;

base::Result<Simplifier> Simplifier::Open(const std::string& config) {
  try {
    return Simplifier(std::make_unique<opencc::SimpleConverter>(config));
  } catch (const std::exception& e) {
    return base::WithHint(
        base::MakeError(base::ErrorCode::kIo, "cannot open the OpenCC configuration '{}': {}",
                        config, OneLine(e.what())),
        "OpenCC's data files are in the Debian package libopencc-data");
  }
}

base::Result<std::string> Simplifier::Convert(std::string_view text) const {
  try {
    return converter_->Convert(text.data(), text.size());
  } catch (const std::exception& e) {
    return base::MakeError(base::ErrorCode::kBadData, "OpenCC cannot convert the text: {}",
                           OneLine(e.what()));
  }
}

}  // namespace kvasir::corpus
