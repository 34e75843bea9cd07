// Export: metrics of running programs as Prometheus reads them. What is sent is made at the moment
// somebody asks; the programs are not asked.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore::cli {

// Which processes are exported: all that list_published() gives, or those among them that it takes.
using ProcessFilter = std::function<bool(pid_t)>;

// The text of now, in Prometheus' format, version 0.0.4; or in that of OpenMetrics 1.0.
enum class MetricsFormat : uint8_t { kPrometheus, kOpenMetrics };
std::string metrics_text(const ProcessFilter& filter, MetricsFormat format);

// Where metrics go: "9464" or "[ADDRESS:]PORT": served over HTTP as /metrics, on 127.0.0.1 unless
// an address is given; a path: written there again and again, each time whole (as node_exporter's
// textfile collector wants it).
class MetricsExport {
 public:
  // Errors: EINVAL (neither a port nor a path; or OpenMetrics over HTTP, which is Prometheus' form
  // alone), those of the port or the file.
  static Result<std::unique_ptr<MetricsExport>> start(
      const std::string& where, ProcessFilter filter,
      MetricsFormat format = MetricsFormat::kPrometheus);
  ~MetricsExport();
  MetricsExport(const MetricsExport&) = delete;
  MetricsExport& operator=(const MetricsExport&) = delete;

  // "http://127.0.0.1:9464/metrics", or the path.
  const std::string& place() const { return place_; }
  // Of a path: writes it. Of a port nothing: whoever wants metrics asks.
  Status refresh();
  // The same while a program runs: a file that cannot be written is reported on standard error,
  // once until it can be again.
  void refresh_or_tell();

 private:
  struct Server;
  MetricsExport() = default;
  std::string place_;
  ProcessFilter filter_;
  MetricsFormat format_ = MetricsFormat::kPrometheus;
  bool has_failed_ = false;         // the last time, and that was reported
  std::unique_ptr<Server> server_;  // nullptr: a path
};

}  // namespace outcore::cli
