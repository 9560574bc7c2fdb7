// Writes a poem's beginning as it comes, then how probable it was. Built against what is installed:
// c++ -std=c++20 embed.cc $(pkg-config --cflags --libs kvasir)
#include <kvasir/kvasir.h>

#include <iostream>

int main(int argc, char** argv) {
  // A GGUF file; without one, the bundled model.
  auto model = kvasir::Model::Load(argc > 1 ? argv[1] : "").value();
  auto session = kvasir::Session::Make(model).value();
  kvasir::Request request;
  request.prompt = "春";
  request.seed = 1;
  request.constraint = kvasir::Constraint::Regex("\\p{Han}{4}，\\p{Han}{5}。");
  auto answer = session.Generate(request, [](const kvasir::TokenEvent& event) {
    std::cout << event.text << std::flush;
    return true;  // Go on.
  });
  double logprob = 0;
  for (const auto& token : answer.value().continuations[0].tokens) logprob += token.logprob;
  std::cout << "\n" << logprob << " nats\n";
}
