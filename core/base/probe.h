// Probe: places that bpftrace, perf and SystemTap can watch from outside (USDT, provider
// `outcore`). A probe that nobody watches is one instruction that does nothing. Without the header
// of SystemTap there are none.
#pragma once

#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
// OC_PROBE(fill, cache, page, bytes): numbers alone.
#define OC_PROBE(name, a, b, c) DTRACE_PROBE3(outcore, name, a, b, c)
#else
#define OC_PROBE(name, a, b, c) static_cast<void>(0)
#endif
