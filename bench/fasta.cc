#include "bench/fasta.h"

#include <array>
#include <cctype>
#include <cerrno>
#include <fstream>

#include "bench/kmer.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr uint8_t kBlank = 5, kWrong = 6;  // beside bases: of no meaning; in no FASTA

std::array<uint8_t, 256> meanings_of_bytes() {
  std::array<uint8_t, 256> meanings{};
  for (size_t byte = 0; byte < meanings.size(); ++byte) {
    const int c = static_cast<int>(byte);
    meanings[byte] = byte < 128 && std::isspace(c)   ? kBlank
                     : byte < 128 && std::isalpha(c) ? kNoBase
                                                     : kWrong;
  }
  meanings['-'] = meanings['*'] = kNoBase;  // gaps, and ends of proteins
  for (const char c : {'A', 'C', 'G', 'T'}) {
    const auto base = static_cast<uint8_t>(std::string_view("ACGT").find(c));
    meanings[static_cast<size_t>(c)] = meanings[static_cast<size_t>(std::tolower(c))] = base;
  }
  return meanings;
}

}  // namespace

Status read_fasta(const std::string& path, std::vector<uint8_t>& bases) {
  static const std::array<uint8_t, 256> meanings = meanings_of_bytes();
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string line;
  bool has_begun = false;
  for (uint64_t number = 1; std::getline(file, line); ++number) {
    if (line.starts_with('>')) {
      if (!bases.empty()) bases.push_back(kNoBase);
      has_begun = true;
      continue;
    }
    for (const char c : line) {
      const uint8_t meaning = meanings[static_cast<unsigned char>(c)];
      if (meaning == kBlank) continue;
      if (!has_begun) return Error{EINVAL, path + " is not FASTA: it does not begin with '>'"};
      if (meaning == kWrong)
        return Error{EINVAL,
                     cli::format("%s is not FASTA: line %llu has something that is not a letter",
                                 path.c_str(), static_cast<unsigned long long>(number))};
      bases.push_back(meaning);
    }
  }
  if (file.bad() || !file.eof())
    return cli::failure(errno != 0 ? errno : EIO, "read " + path, "make it readable");
  return {};
}

}  // namespace outcore::bench
