// kvasir._kvasir: the library for Python. What people see is kvasir/__init__.py.
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kvasir/kvasir.h"

namespace py = pybind11;

namespace {

// A session that Python's threads take turns with. The interpreter runs on while it works.
class Worker {
 public:
  explicit Worker(kvasir::Session session) : session_(std::move(session)) {}

  const kvasir::Model& model() const { return session_.model(); }

  // body(session), without the interpreter's lock.
  template <typename Body>
  auto Work(Body&& body) {
    const py::gil_scoped_release released;
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::forward<Body>(body)(session_);
  }

 private:
  std::mutex mutex_;
  kvasir::Session session_;
};

std::unique_ptr<Worker> Load(const std::string& path, std::size_t threads,
                             const kvasir::CacheSettings& cache) {
  const py::gil_scoped_release released;
  const kvasir::Model model = kvasir::Model::Load(path).value();
  return std::make_unique<Worker>(
      kvasir::Session::Make(model, {.threads = threads, .cache = cache}).value());
}

using PythonCallback = std::function<py::object(std::size_t, std::uint32_t, double, std::string)>;

// A key pressed to interrupt ends a run between two tokens. A callback ends it by returning False.
kvasir::TokenCallback TokenCallbackOf(const std::optional<PythonCallback>& callback) {
  return [&callback](const kvasir::TokenEvent& event) {
    const py::gil_scoped_acquire acquired;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (!callback) return true;
    const py::object answer = (*callback)(event.continuation, event.token.id, event.token.logprob,
                                          std::string(event.text));
    return !answer.is(py::bool_(false));
  };
}

kvasir::Answer Generate(Worker& worker, const kvasir::Request& request,
                        const std::optional<PythonCallback>& callback) {
  // Choosing the best of several waits for all of them: then there is nothing to tell.
  kvasir::TokenCallback told;
  if (callback || request.best_of == 1) told = TokenCallbackOf(callback);
  return worker.Work(
      [&](kvasir::Session& session) { return session.Generate(request, told).value(); });
}

// float32 [rows, vocabulary], which owns its numbers.
py::array_t<float> Logits(Worker& worker, const std::vector<kvasir::TokenId>& ids, bool last) {
  auto logits = std::make_unique<kvasir::Logits>(worker.Work([&](kvasir::Session& session) {
    return (last ? session.LastLogits(ids) : session.AllLogits(ids)).value();
  }));
  const auto rows = static_cast<py::ssize_t>(logits->rows);
  const auto vocabulary = static_cast<py::ssize_t>(logits->vocabulary);
  float* values = logits->values.data();
  const py::capsule owner(logits.release(),
                          [](void* held) { delete static_cast<kvasir::Logits*>(held); });
  return py::array_t<float>({rows, vocabulary}, values, owner);
}

void DefineRequest(py::module_& module) {
  using kvasir::Constraint;
  using kvasir::Request;
  py::class_<Constraint>(module, "Constraint")
      .def_static("regex", &Constraint::Regex)
      .def_static("grammar", &Constraint::Grammar)
      .def_static("choices", &Constraint::Choices)
      .def_static("json_schema", [](std::string schema, bool assert_formats, bool compact) {
        Constraint constraint = Constraint::JsonSchema(std::move(schema));
        constraint.assert_formats = assert_formats;
        constraint.compact_json = compact;
        return constraint;
      });
  py::class_<Request>(module, "Request")
      .def(py::init<>())
      .def_readwrite("prompt", &Request::prompt)
      .def_readwrite("prompt_tokens", &Request::prompt_tokens)
      .def_readwrite("max_tokens", &Request::max_tokens)
      .def_property(
          "roll", [](const Request& r) { return r.overflow == kvasir::Overflow::kRoll; },
          [](Request& r, bool roll) {
            r.overflow = roll ? kvasir::Overflow::kRoll : kvasir::Overflow::kStop;
          })
      .def_readwrite("temperature", &Request::temperature)
      .def_readwrite("top_k", &Request::top_k)
      .def_readwrite("top_p", &Request::top_p)
      .def_readwrite("min_p", &Request::min_p)
      .def_readwrite("repeat_penalty", &Request::repeat_penalty)
      .def_readwrite("presence_penalty", &Request::presence_penalty)
      .def_readwrite("frequency_penalty", &Request::frequency_penalty)
      .def_readwrite("biases", &Request::biases)
      .def_readwrite("seed", &Request::seed)
      .def_readwrite("count", &Request::count)
      .def_readwrite("best_of", &Request::best_of)
      .def_readwrite("stops", &Request::stops)
      .def_readwrite("bans", &Request::bans)
      .def_readwrite("end_token", &Request::end_token)
      .def_readwrite("ignore_end", &Request::ignore_end)
      .def_readwrite("constraint", &Request::constraint)
      .def_readwrite("top_logprobs", &Request::top_logprobs);
}

void DefineAnswer(py::module_& module) {
  py::class_<kvasir::TokenProbability>(module, "TokenProbability")
      .def_readonly("id", &kvasir::TokenProbability::id)
      .def_readonly("logprob", &kvasir::TokenProbability::logprob);
  py::class_<kvasir::Token>(module, "Token")
      .def_readonly("id", &kvasir::Token::id)
      .def_readonly("logprob", &kvasir::Token::logprob)
      .def_readonly("top", &kvasir::Token::top);
  py::class_<kvasir::Continuation>(module, "Continuation")
      .def_readonly("text", &kvasir::Continuation::text)
      .def_readonly("tokens", &kvasir::Continuation::tokens)
      .def_property_readonly("finish", [](const kvasir::Continuation& continuation) {
        return std::string(kvasir::FinishReasonName(continuation.finish));
      });
  py::class_<kvasir::Answer>(module, "Answer")
      .def_readonly("seed", &kvasir::Answer::seed)
      .def_readonly("continuations", &kvasir::Answer::continuations);
  py::class_<kvasir::Evaluation>(module, "Evaluation")
      .def_readonly("tokens", &kvasir::Evaluation::tokens)
      .def_readonly("nll", &kvasir::Evaluation::nll)
      .def_readonly("perplexity", &kvasir::Evaluation::perplexity)
      .def_readonly("bits_per_char", &kvasir::Evaluation::bits_per_char)
      .def_readonly("token_nll", &kvasir::Evaluation::token_nll);
}

void DefineWorker(py::module_& module) {
  using kvasir::CacheSettings;
  py::class_<CacheSettings>(module, "CacheSettings")
      .def(py::init<>())
      .def_readwrite("enabled", &CacheSettings::enabled)
      .def_readwrite("policy", &CacheSettings::policy)
      .def_readwrite("share_prefixes", &CacheSettings::share_prefixes)
      .def_readwrite("block_tokens", &CacheSettings::block_tokens)
      .def_readwrite("prefill_chunk", &CacheSettings::prefill_chunk)
      .def_readwrite("max_batch", &CacheSettings::max_batch)
      .def_readwrite("budget_bytes", &CacheSettings::budget_bytes);
  py::class_<kvasir::ModelInfo>(module, "ModelInfo")
      .def_readonly("path", &kvasir::ModelInfo::path)
      .def_readonly("name", &kvasir::ModelInfo::name)
      .def_readonly("architecture", &kvasir::ModelInfo::architecture)
      .def_readonly("layers", &kvasir::ModelInfo::layers)
      .def_readonly("heads", &kvasir::ModelInfo::heads)
      .def_readonly("kv_heads", &kvasir::ModelInfo::kv_heads)
      .def_readonly("head_dim", &kvasir::ModelInfo::head_dim)
      .def_readonly("embedding", &kvasir::ModelInfo::embedding)
      .def_readonly("context", &kvasir::ModelInfo::context)
      .def_readonly("vocabulary", &kvasir::ModelInfo::vocabulary)
      .def_readonly("parameters", &kvasir::ModelInfo::parameters)
      .def_readonly("cache_bytes_per_token", &kvasir::ModelInfo::cache_bytes_per_token);
  py::class_<Worker>(module, "Worker")
      .def(py::init(&Load))
      .def_property_readonly("info", [](const Worker& w) { return w.model().info(); })
      .def("tokenize",
           [](const Worker& w, std::string_view text) { return w.model().Tokenize(text).value(); })
      .def("prompt_tokens",
           [](const Worker& w, std::string_view text) {
             return w.model().PromptTokens(text).value();
           })
      .def("detokenize",
           [](const Worker& w, const std::vector<kvasir::TokenId>& ids) {
             return w.model().Detokenize(ids).value();
           })
      .def("token_text",
           [](const Worker& w, kvasir::TokenId id) { return w.model().TokenText(id); })
      .def("generate", &Generate)
      .def("logits", &Logits)
      .def("next",
           [](Worker& w, const std::string& prompt, std::size_t k) {
             return w.Work([&](kvasir::Session& s) { return s.Next(prompt, k).value(); });
           })
      .def("evaluate", [](Worker& w, const std::string& text, std::uint64_t stride) {
        return w.Work([&](kvasir::Session& s) { return s.Evaluate(text, stride).value(); });
      });
}

}  // namespace

PYBIND11_MODULE(_kvasir, module) {
  module.attr("version") = kvasir::Version();
  module.attr("numerics_contract") = kvasir::NumericsContract();
  // Never freed: the interpreter may be gone before what is static here.
  static PyObject* error =
      py::exception<kvasir::Exception>(module, "Error", PyExc_ValueError).release().ptr();
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const kvasir::Exception& exception) {
      PyErr_SetString(error, exception.what());
    }
  });
  DefineRequest(module);
  DefineAnswer(module);
  DefineWorker(module);
}
