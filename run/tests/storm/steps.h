// Steps: what an actor may do when it is its turn. Each picks its arguments, says them, and checks
// what came of it; the files' model is as the file when it returns.
#pragma once

namespace storm {

// Windows.
void step_map();
void step_map_over();
void step_unmap();
void step_protect();
void step_remap();
void step_advise();
void step_sync();
void step_touch_read();
void step_touch_write();
void step_touch_many();

// Files.
void step_new_file();
void step_open();
void step_close();
void step_dup();
void step_read();
void step_write();
void step_truncate();
void step_fallocate();
void step_move_bytes();
void step_fsync();
void step_copy();
void step_seek_data();

// Allocated memory.
void step_allocate();
void step_resize_block();
void step_free();
void step_write_block();
void step_file_to_block();
void step_block_to_file();

// Several actors at once, each on a range of its own.
void step_together();
void take_part();

// Processes.
void step_fork();
void step_spawn();
void step_exec();
void step_end();
void step_vfork_tables();
void step_clone_memory();
void step_short_child();
void step_pass();
void receive_passed();
void reap_child();

// Signals, timers, threads of a moment.
void step_signal();
void step_timer();
void step_cancel();
void step_blocked();
void step_aio();

// Makes the next file, of random bytes.
void make_file();

}  // namespace storm
