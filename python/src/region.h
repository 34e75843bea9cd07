// RegionHandle: a region as Python holds it, with a count of what still uses its memory.
//
// Every call that can wait gives up the GIL, so calls of several threads overlap; unmap() must not
// overlap with others and refuses while one is under way. The counts are changed with the GIL held.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/assert.h"
#include "outcore/runtime.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/interruptible.h"

namespace outcore::python {

// How often this process is a fork of the one that loaded us.
uint64_t fork_count();

class RegionHandle {
 public:
  RegionHandle(std::shared_ptr<Runtime> runtime, Region region, uint64_t start);
  RegionHandle(const RegionHandle&) = delete;
  RegionHandle& operator=(const RegionHandle&) = delete;
  ~RegionHandle();  // unmaps; an error is printed on stderr

  // Raises ValueError if the region is closed, OSError(EPERM) in a forked child.
  void check(const char* what) const;

  // Carries out `call` without the GIL, and raises what it returns.
  template <typename Call>
  void run(const char* what, Blame blame, const Call& call) {
    check(what);
    run_mapped(blame, call);
  }
  // The same without a check. REQUIRES: is_mapped().
  template <typename Call>
  void run_mapped(Blame blame, const Call& call) {
    CLI_CHECK(is_mapped());
    ++calls_;
    Status status;
    {
      const WithoutGil released;
      status = call(region_);
    }
    end_of_call();
    require(status, uri_, blame);
  }

  // As run, for calls that can take long: Ctrl-C is heard meanwhile, and ends the waiting but not
  // the call. So `call` is copied, and `keep` is kept as long as it lasts.
  template <typename Call>
  void run_long(const char* what, Blame blame, const Call& call,
                nanobind::object keep = nanobind::none()) {
    if (!hears_signals()) return run(what, blame, call);
    check(what);
    ++calls_;
    const Status status = call_interruptibly(
        [this, call] { return call(region_); },
        nanobind::make_tuple(nanobind::find(*this), std::move(keep)), [this] { end_call(); });
    end_of_call();
    require(status, uri_, blame);
  }
  // Whether the range is in memory, as far as that is known without touching it.
  bool is_resident(uint64_t offset, uint64_t size_bytes) const;

  // Brings the range in, as prefault does, and as cheaply as may be where it is small.
  void ensure(uint64_t offset, uint64_t size_bytes);
  // Brings in the pages at these offsets, by `threads` threads at a time: many transfers in flight.
  void bring(std::vector<uint64_t> offsets, unsigned threads);
  // Share of each of `cells` equal parts of the region that is in memory; of large ones, a sample.
  nanobind::list residency(size_t cells) const;
  // BufferError while something uses the memory; after success the handle is closed.
  void unmap(bool force);
  // Closed from now on, but unmapped only when nothing uses the memory any more: for whoever must
  // not fail. An error is then one line on sys.stderr, of what is lost.
  void close_when_unused();
  // The interpreter ends: unmaps it, or, if its memory is in use, stores what was written. An error
  // is one line, as above.
  void end_at_exit();

  // While it lives the region is not unmapped. With the GIL.
  class Call {
   public:
    explicit Call(RegionHandle& region) : region_(region) { ++region_.calls_; }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call() { region_.end_of_call(); }

   private:
    RegionHandle& region_;
  };

  void add_export() { ++exports_; }
  void drop_export() {
    CLI_CHECK(exports_ != 0);
    if (--exports_ == 0 && is_dropped_) end_unused();
  }
  uint64_t exports() const { return exports_; }
  bool is_mapped() const { return region_.is_mapped(); }
  bool is_open() const { return region_.is_mapped() && !is_closing_ && !is_dropped_; }
  bool is_inherited() const { return fork_count() != forks_; }
  bool is_writable() const { return region_.access() != Access::kReadOnly; }
  const Region& region() const { return region_; }
  const std::string& uri() const { return uri_; }
  uint64_t start() const { return start_; }

 private:
  void end_unused();
  void tell_loss(const Status& status);
  void end_of_call() {
    CLI_CHECK(calls_ != 0);
    --calls_;
  }
  void end_call() {  // one that was left alone
    end_of_call();
    if (calls_ == 0 && exports_ == 0 && is_dropped_) end_unused();
  }
  std::shared_ptr<Runtime> runtime_;  // outlives the region: declared before it
  Region region_;
  std::string uri_;
  uint64_t start_;  // of the region in its store
  uint64_t forks_;
  uint64_t exports_ = 0, calls_ = 0;
  bool is_closing_ = false, is_dropped_ = false, is_loss_told_ = false;
};

void add_region(nanobind::module_& m);

}  // namespace outcore::python
