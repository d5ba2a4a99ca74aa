// JS functions that the backward pass calls: gradient hooks and functions with a custom backward.
//
// A backward pass may run on the event loop's thread, on the environment's native thread or, with
// CUDA, on a thread of the autograd engine; graphs are freed on any of them. JS runs only on the
// event loop's thread, where references to it must also be created and deleted.
#pragma once

#include <napi.h>
#include <torch/csrc/autograd/variable.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

namespace torchformer::bind {

struct Environment;

// The JS functions of one environment. Shared by all callbacks, which may outlive it.
class CallbackRegistry {
 public:
  struct Entry {
    Napi::FunctionReference call;
    Napi::FunctionReference release;
  };

  // On the event loop's thread.
  explicit CallbackRegistry(Environment& environment);
  size_t add(Napi::Function call, Napi::Function release);
  const Entry& entry(size_t id) const;
  // Deletes the references of callbacks that no longer exist.
  void collect();
  void close();

  // On any thread.
  void drop(size_t id);
  Environment& environment() const;
  bool isLoopThread() const { return std::this_thread::get_id() == loopThread_; }

 private:
  Environment* environment_;
  std::thread::id loopThread_;
  size_t nextId_ = 0;
  std::unordered_map<size_t, Entry> entries_;
  mutable std::mutex mutex_;
  std::vector<size_t> dropped_;
  std::atomic<bool> hasDropped_{false};
  bool closed_ = false;
};

// A JS function `(gradients) => { results, done }`. `done` is called after the results are read.
class JsCallback {
 public:
  // On the event loop's thread. `release` is called there when the callback is no longer needed.
  JsCallback(Environment& environment, Napi::Function call, Napi::Function release);
  ~JsCallback();
  JsCallback(const JsCallback&) = delete;
  JsCallback& operator=(const JsCallback&) = delete;

  // On any thread; waits for the event loop if that is another thread. Results may be undefined.
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& gradients) const;
  void release();

 private:
  torch::autograd::variable_list callOnLoop(const torch::autograd::variable_list& gradients) const;

  std::shared_ptr<CallbackRegistry> registry_;
  size_t id_;
  bool released_ = false;
};

// Adds `registerHook`, `removeHook` and `attachBackward` to the addon's exports.
void exportCallbackFunctions(Napi::Object exports);

}  // namespace torchformer::bind
