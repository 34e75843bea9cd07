// Kind: what a step may do. Each picks its own arguments, says them, and checks what came of it.
#pragma once

namespace sequence {

// Mappings.
void step_mmap();
void step_mmap_fixed();
void step_mmap_noreplace();
void step_mmap_wrong();
void step_reserve();
void step_munmap();
void step_munmap_twice();
void step_mremap();
void step_mremap_fixed();
void step_mprotect();

// What is told about them.
void step_msync();
void step_madvise();
void step_posix_madvise();
void step_mincore();
void step_mlock();
void step_munlock();

// Touches and signals.
void step_read_memory();
void step_write_memory();
void step_touch();
void step_touch_behind_end();
void step_masked();
void step_usr1();
void step_sigaltstack();
void step_threads();

// Files that are mapped.
void step_open();
void step_close();
void step_dup();
void step_lseek();
void step_read();
void step_readv();
void step_pread();
void step_preadv();
void step_write();
void step_writev();
void step_pwrite();
void step_pwritev();
void step_ftruncate();
void step_fallocate();
void step_fsync();
void step_fadvise();

// Bytes on their way through the kernel.
void step_copy_file_range();
void step_sendfile();
void step_pipe();
void step_socket();
void step_big_write();
void step_wrong_buffer();
void step_stdio_read();
void step_stdio_write();
void step_path();

// Other processes.
void step_fork_read();
void step_fork_write();
void step_fork_map();
void step_fork_exec();
void step_vfork();
void step_spawn();
void step_poke();
void step_peek();
void step_exec();

// What a process that step_poke() or step_peek() started does. Returns its exit code.
int be_other_process(int count, char** arguments);
// Takes over the files from the process that was before the exec.
void resume();

}  // namespace sequence
