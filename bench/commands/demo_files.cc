#include "bench/commands/demo_files.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <vector>

#include "bench/medium.h"
#include "cli/text.h"

namespace outcore::cli {

Result<uint64_t> gather_files(const std::string& folder, uint64_t size_bytes,
                              const std::string& to) {
  namespace fs = std::filesystem;
  constexpr uint64_t kUnit = 4096;
  constexpr size_t kPieceBytes = size_t{1} << 20;
  std::ofstream out(to, std::ios::binary | std::ios::trunc);
  std::vector<char> piece(kPieceBytes);
  uint64_t gathered = 0;
  std::error_code failed;  // of a folder that may not be read: it is left out
  const auto options = fs::directory_options::skip_permission_denied;
  fs::recursive_directory_iterator file(folder, options, failed);
  for (; out && !failed && file != fs::end(file) && gathered < size_bytes; file.increment(failed)) {
    std::error_code unknown;
    if (fs::symlink_status(file->path(), unknown).type() != fs::file_type::regular) continue;
    std::ifstream in(file->path(), std::ios::binary);
    while (in && out && gathered < size_bytes) {
      const uint64_t wanted = std::min<uint64_t>(piece.size(), size_bytes - gathered);
      in.read(piece.data(), static_cast<std::streamsize>(wanted));
      out.write(piece.data(), in.gcount());
      gathered += static_cast<uint64_t>(in.gcount());
    }
  }
  out.close();
  if (!out) return failure(errno, "write " + to, bench::kRoomRemedy);
  gathered = gathered / kUnit * kUnit;
  fs::resize_file(to, gathered, failed);
  if (failed) return failure(failed.value(), "shorten " + to, bench::kRoomRemedy);
  return gathered;
}

}  // namespace outcore::cli
