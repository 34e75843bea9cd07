// WriterClaim: makes sure that only one runtime of the process has a store mapped for writing. A
// second one would have pages of its own, and neither would see, or keep, what the other writes.
#pragma once

#include <sys/types.h>

#include <string>

namespace outcore::runtime {

class WriterClaim {
 public:
  WriterClaim() = default;  // claims nothing
  ~WriterClaim();
  WriterClaim(const WriterClaim&) = delete;
  WriterClaim& operator=(const WriterClaim&) = delete;

  // False: another runtime has the claim. Children do not inherit claims of their parent process.
  // Any thread; not on the fault path. REQUIRES: called once.
  bool acquire(const std::string& identity);

 private:
  std::string identity_;
  pid_t process_ = 0;
};

}  // namespace outcore::runtime
