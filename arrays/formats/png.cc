// PNG, by libpng. See arrays/commands/array_picture.h.
#include <png.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "arrays/commands/array_picture.h"
#include "cli/assert.h"

// C++ at both ends: only the name is C's.
#pragma GCC diagnostic push
#ifdef __clang__
#pragma GCC diagnostic ignored "-Wreturn-type-c-linkage"
#endif
extern "C" outcore::Status outcore_write_png(const outcore::cli::Picture& picture,
                                             const std::string& path) {
  CLI_CHECK(picture.rgb.size() == size_t{3} * picture.width * picture.height);
  png_image image;
  std::memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  image.width = picture.width;
  image.height = picture.height;
  image.format = PNG_FORMAT_RGB;
  const auto stride = static_cast<png_int_32>(picture.width * 3);
  // By a file of our own: the library's error does not say why the system refused.
  std::FILE* const file = std::fopen(path.c_str(), "wbxe");
  errno = file == nullptr ? errno : 0;
  bool is_written = file != nullptr && png_image_write_to_stdio(&image, file, 0, picture.rgb.data(),
                                                                stride, nullptr) != 0;
  int why = errno;
  if (file != nullptr && std::fclose(file) != 0 && is_written) {
    is_written = false;
    why = errno;
  }
  if (is_written) return {};
  if (why != 0) return outcore::Error{why, "write " + path + ": " + ::strerrordesc_np(why)};
  return outcore::Error{EIO, "write " + path + ": " + image.message};
}
#pragma GCC diagnostic pop
