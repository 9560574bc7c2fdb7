// kvasir diff A.npy B.npy: are two arrays equal bit for bit, and if not, by how much?
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "eval/ulp_difference.h"
#include "formats/npy.h"

namespace kvasir::cli {
namespace {

struct DiffFlags {
  std::string a;
  std::string b;
  bool json = false;
};

// "[3, 17]": where element `index` stands in the array.
std::vector<std::uint64_t> IndexInShape(const tensor::Shape& shape, std::uint64_t index) {
  std::vector<std::uint64_t> place(shape.rank());
  for (std::size_t i = shape.rank(); i-- > 0;) {
    place[i] = index % shape[i];
    index /= shape[i];
  }
  return place;
}

void Print(const formats::NpyF32& a, const formats::NpyF32& b, const eval::UlpDifference& d) {
  if (d.differing == 0) {
    fmt::print("equal: all {} numbers have the same bits\n", d.count);
    return;
  }
  const std::size_t first = *d.first_differing;
  fmt::print("different: {} of {} numbers\n", d.differing, d.count);
  fmt::print("ULP distance        max {}, mean {:.6g}\n", d.ulp_max, d.ulp_mean);
  fmt::print("absolute distance   max {:.6g}\n", d.absolute_max);
  if (d.incomparable > 0) fmt::print("NaN on one side     {}\n", d.incomparable);
  fmt::print("first at            [{}]: {:.9g} and {:.9g}\n",
             fmt::join(IndexInShape(a.shape, first), ", "), a.values[first], b.values[first]);
}

base::Result<int> RunDiff(const DiffFlags& flags) {
  base::Env& env = base::Env::Default();
  KV_TRY(const auto a, formats::ReadNpyF32(env, flags.a));
  KV_TRY(const auto b, formats::ReadNpyF32(env, flags.b));
  if (a.shape != b.shape) {
    return base::MakeError(base::ErrorCode::kBadData, "the shapes differ: '{}' has {}, '{}' has {}",
                           flags.a, a.shape.ToString(), flags.b, b.shape.ToString());
  }
  const eval::UlpDifference d = eval::CompareUlp(a.values, b.values);
  if (flags.json) {
    nlohmann::ordered_json json = {
        {"equal", d.differing == 0},      {"count", d.count},     {"differing", d.differing},
        {"incomparable", d.incomparable}, {"ulp_max", d.ulp_max}, {"ulp_mean", d.ulp_mean},
        {"absolute_max", d.absolute_max}};
    if (d.first_differing) json["first"] = IndexInShape(a.shape, *d.first_differing);
    PrintJson(json);
  } else {
    Print(a, b, d);
  }
  return d.differing == 0 ? 0 : 1;
}

}  // namespace

void AddDiffCommand(CommandSet& commands) {
  auto flags = std::make_shared<DiffFlags>();
  CLI::App* command =
      commands.Add("diff", "Compare two .npy files bit for bit; exit status 1 if they differ",
                   "kvasir diff a.npy b.npy");
  command->add_option("A", flags->a, "f32 .npy file")->required();
  command->add_option("B", flags->b, "f32 .npy file")->required();
  command->add_flag("--json", flags->json, "one JSON document");
  commands.OnRun(command, [flags] { return RunDiff(*flags); });
}

}  // namespace kvasir::cli
