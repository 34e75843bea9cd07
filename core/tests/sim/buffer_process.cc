#include "core/tests/sim/buffer_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/region/address_map.h"
#include "core/region/view_pool.h"
#include "core/store/file_version.h"

namespace outcore::sim {

using buffer::kPage;

void BufferProcess::live() {
  if (join()) {
    start_engine();
    if (open_file()) {
      map();
      work();
    }
    stage_ = Stage::kLeaves;
    leave();
  }
  stage_ = Stage::kOver;
}

void BufferProcess::die() {
  if (stage_ == Stage::kOver) return;
  stage_ = Stage::kOver;
  private_bytes_ = 0;
}

void BufferProcess::serve(const char* name, std::function<void()> body) {
  ++services_left_;
  world_.fibers.add(std::to_string(number_) + " " + name, [this, body = std::move(body)] {
    body();
    --services_left_;
  });
}

bool BufferProcess::join() {
  for (int tries = 0;; ++tries) {
    Result<std::unique_ptr<buffer::Member>> joined =
        buffer::Member::join("simulated", world_.limit_bytes);
    if (joined) {
      member_ = joined.value().get();
      buffer_ = std::make_shared<buffer::Buffer>(std::move(joined).value());
      ++world_.tally.joins;
      return true;
    }
    if (joined.code() != ETIMEDOUT || !world_.plan.has_stops())
      world_.fibers.fail("a process cannot join: " + joined.message());
    if (tries == 20) return false;
  }
}

void BufferProcess::start_engine() {
  paging::PagerOptions options;
  options.budget_bytes = 2 << 20;
  options.frames_max = options.budget_bytes / kPage;
  options.policy = "fifo";
  options.readahead_bytes = random_.chance(500) ? 128 << 10 : 0;
  options.wait_ns_max = world_.plan.wait_ns_max;
  options.has_threads = false;
  options.buffer_bounce.small_count = 4;
  options.buffer_bounce.chunk_bytes = 32 << 10;
  options.buffer_bounce.chunk_count = 2;
  Result<std::unique_ptr<paging::Engine>> started = paging::Engine::start(options);
  if (!started) world_.fibers.fail("no engine: " + started.error().message);
  engine_ = std::move(started).value();
  serve("keeps", [this] { buffer_->keeping().run(); });
  serve("inherits", [this] { buffer_->heir().work(); });
}

bool BufferProcess::open_file() {
  fd_ = ::open(world_.file.path().c_str(), (is_writer_ ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  world_.fibers.require(fd_ >= 0, "the file is opened");
  world_.fibers.note_descriptor(fd_, true);
  using Use = buffer::SharedFile::Use;
  // It may change while it is looked at.
  constexpr int kTriesMax = 50;
  for (int tries = 0; tries < kTriesMax; ++tries) {
    store::FileVersion version;
    world_.fibers.require(store::FileVersion::of(fd_, &version) == 0, "the file is looked at");
    Result<std::unique_ptr<buffer::SharedFile>> opened =
        buffer::SharedFile::open(buffer_, version, is_writer_ ? Use::kWrite : Use::kRead, fd_);
    if (opened) {
      cache_ = std::make_unique<paging::PageCache>();
      cache_->shared = std::move(opened).value();
      return true;
    }
    if (opened.code() != EBUSY && (opened.code() != ETIMEDOUT || !world_.plan.has_stops()))
      world_.fibers.fail("the file cannot be shared: " + opened.message());
    world_.fibers.let_pass(random_.between(10'000, 3'000'000));
  }
  ++world_.tally.refusals;
  return false;
}

// As core/runtime does.
void BufferProcess::map() {
  paging::PageCache& cache = *cache_;
  const uint64_t pages = world_.file.pages(), first = cache.shared->first_frame_page();
  world_.fibers.require(first + pages <= BufferKernel::kPagesMax, "the simulated memory is enough");
  const auto store =
      std::make_shared<BufferStore>(world_.fibers, fd_, world_.file.bytes(), world_.plan.behaviour);
  cache.owned.push_back(store);
  cache.store = store.get();
  cache.traits = store->traits();
  cache.uri = store->uri();
  cache.store_bytes = store->size_bytes();
  cache.page_bytes = kPage;
  cache.is_writable = is_writer_;
  cache.delivery = Delivery::kInThread;
  if (is_writer_) cache.writes = std::make_unique<paging::SharedWrites>();
  world_.fibers.require(cache.allocate_words(pages).ok(), "a table of page words");
  auto frames = std::make_unique<BufferSimFrames>(world_.kernel, first, pages, is_writer_,
                                                  world_.plan.defect);
  frames_ = frames.get();
  cache.frames = std::move(frames);
  world_.fibers.require(engine_->add_cache(&cache).ok(), "the cache is added");
  // What is in memory is asked by addresses; nobody touches these.
  void* const at = ::mmap(nullptr, pages * kPage, PROT_NONE, MAP_SHARED, member_->frames_fd(),
                          static_cast<off_t>(first * kPage));
  world_.fibers.require(at != MAP_FAILED, "addresses");
  address_ = static_cast<std::byte*>(at);
  view_ = region::ViewPool::instance().allocate();
  view_->address = address_;
  view_->offset = 0;
  view_->size_bytes = view_->reserved_bytes = pages * kPage;
  view_->is_writable = is_writer_;
  view_->on_error = OnError::kSignal;
  view_->advice = Advice::kNormal;
  world_.fibers.require(engine_->add_view(cache, view_).ok(), "the view is added");
  if (is_writer_) serve("stores", [this] { engine_->writer().run(); });
  serve("prefetches", [this] {
    while (!is_ending_)
      if (!engine_->run_prefetch()) world_.fibers.let_pass(100'000);
    while (engine_->run_prefetch()) {
    }
  });
}

void BufferProcess::work() {
  stage_ = Stage::kWorks;
  const auto threads = static_cast<uint32_t>(random_.between(1, world_.plan.threads_max));
  threads_left_ = threads;
  for (uint32_t i = 0; i < threads; ++i)
    world_.fibers.add(std::to_string(number_) + " thread " + std::to_string(i), [this] {
      std::vector<Pin> pins;
      for (uint64_t op = 0; op < world_.plan.ops; ++op) act(pins);
      while (!pins.empty()) unpin(pins);
      --threads_left_;
      os::wake_all(&threads_left_);
    });
  for (uint32_t left; (left = threads_left_.load()) != 0;)
    os::wait(&threads_left_, left, 1'000'000'000);
}

// As core/runtime does: the view, the cache, the file, the engine, the buffer.
void BufferProcess::leave() {
  if (view_ != nullptr) {
    while (is_writer_ && !flush_pages(0, world_.file.pages()).ok()) {
      world_.fibers.require(world_.plan.may_fail(), "the last flush of a process fails");
      world_.fibers.let_pass(100'000);
    }
    engine_->hide_view(view_);
    engine_->remove_view(view_);
    region::ViewPool::instance().free(view_);
    engine_->remove_cache(cache_.get());
    if (is_writer_)
      cache_->shared->end_writing(fd_, [this] { return engine_->store_adopted(*cache_) == 0; });
    is_ending_ = true;
    if (is_writer_) engine_->writer().tell_to_end();
    cache_.reset();
    ::munmap(address_, world_.file.pages() * kPage);
  }
  if (private_bytes_ != 0) buffer_->release_private(private_bytes_);
  private_bytes_ = 0;
  buffer_->heir().tell_to_end();
  buffer_->keeping().tell_to_end();
  while (services_left_ != 0) world_.fibers.let_pass(1'000'000);
  engine_.reset();
  buffer_.reset();
  member_ = nullptr;
  if (fd_ < 0) return;
  world_.fibers.note_descriptor(fd_, false);
  ::close(fd_);
}

std::string BufferProcess::describe() const {
  constexpr const char* kStages[] = {"joins", "works", "leaves", "is over"};
  return "process " + std::to_string(number_) + (is_writer_ ? ", which writes, " : " ") +
         kStages[static_cast<int>(stage_)] +
         (member_ == nullptr ? "" : ", member " + std::to_string(member_->index())) + "\n";
}

}  // namespace outcore::sim
