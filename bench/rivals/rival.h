// Rival: one I/O library, and the program that measures it as all others are.
//
// A program is a class of Rival, and make_rival(); main() is rival.cc's. It is started by mpirun
// and does, in this order: write durably by boxes; read by the same boxes; read by planes; look at
// planes as a view. Before each the files' pages leave the page cache; the time is from the first
// process' start to the last one's end, with opening, closing and, of writing, fsync(2); every
// element that was read is compared afterwards. One line of JSON a phase.
#pragma once

#include <memory>

#include "bench/rivals/work.h"

namespace outcore::rivals {

// Where a box of a variable is in memory: strides count elements, that of the last dimension is 1.
struct Look {
  const double* data = nullptr;
  Dims strides;
};

// All processes call each of these, with the same words. What fails calls fail().
class Rival {
 public:
  virtual ~Rival() = default;
  virtual std::string name() const = 0;
  virtual std::string version() const = 0;
  // Before and after all work, untimed: what a program does once.
  virtual void begin(const Work&) {}
  virtual void end(const Work&) {}
  // What is process `rank`'s to make durable and to remove: files, or folders of them.
  virtual std::vector<std::string> files(const Work& work, unsigned rank) const = 0;
  // Its write() has synced already.
  virtual bool is_durable() const { return false; }
  // Others than the process that wrote a box can read it.
  virtual bool reads_planes() const { return true; }

  // Opens, writes this process' boxes, closes.
  virtual void write(const Work& work, const Data& data) = 0;
  // Opens, reads this process' boxes into data of the right size, closes.
  virtual void read(const Work& work, Division division, Data* data) = 0;

  virtual bool has_views() const { return false; }
  virtual Look view(const Work&, size_t, const Box&) { return {}; }
  virtual void end_views() {}
};

std::unique_ptr<Rival> make_rival();  // of each program its own

}  // namespace outcore::rivals
