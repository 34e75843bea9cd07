"""bench-far: what its rows ask is what they say, and wrong words get one line."""

import pathlib
import socket
import subprocess
import sys
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "far"), str(ROOT / "bench")]
import delay  # noqa: E402
import engines  # noqa: E402
import judge  # noqa: E402

ECHO, REDIS = {"p50_us": 17.0, "mib_s": 2000.0}, {"p50_us": 29.0, "mib_s": 1000.0}


def table(*words):
    return subprocess.run([sys.executable, ROOT / "bench/far/table.py", *words],
                          capture_output=True, text=True, check=False)


class Distance(unittest.TestCase):
    def test_a_delayed_answer_is_whole_and_in_order(self):
        def said_of(words):
            return b"".join(b"%06d" % i for i in range(len(words) * 20_000))

        with socket.create_server(("127.0.0.1", 0)) as server:
            def answer():
                client, _ = server.accept()
                with client:
                    client.sendall(said_of(client.recv(5)))

            answering = threading.Thread(target=answer)
            answering.start()
            far = delay.Delay(server.getsockname()[1], 0.05)
            with socket.create_connection(("127.0.0.1", far.port), timeout=30) as client:
                client.sendall(b"hello")
                said = b""
                while part := client.recv(65536):
                    said += part
            answering.join()
            far.close()
        self.assertEqual(said, said_of(b"hello"))


class Asked(unittest.TestCase):
    def judged(self, verdict, expected):
        self.assertEqual(verdict.verdict, expected, verdict)

    def test_a_fault_may_take_20_us_more_than_redis(self):
        self.judged(judge.fault_latency([{"p50_us": 49.0}], ECHO, REDIS), "met")
        self.judged(judge.fault_latency([{"p50_us": 49.1}], ECHO, REDIS), "NOT MET")

    def test_only_faults_count_for_their_rate(self):
        line = {"fault_fills": 70, "rate": 1000.0, "seconds": 1.0}
        self.judged(judge.fault_rate([line], 100.0, 200.0), "met")
        self.judged(judge.fault_rate([line], 101.0, 200.0), "NOT MET")

    def test_readers_share_the_servers_and_not_each_others_time(self):
        self.judged(judge.readers(4, 100.0, 340.0), "met")
        self.judged(judge.readers(4, 100.0, 339.0), "NOT MET")

    def test_a_scan_is_compared_with_the_client_library(self):
        self.judged(judge.scan([{"rate": 700.0}], REDIS), "met")
        self.judged(judge.scan([{"rate": 699.0}], REDIS), "NOT MET")

    def test_the_slowest_kernel_counts(self):
        self.assertAlmostEqual(judge.stream_allowed(920.0, 0.08), 1000.0)
        line = {f"{k}_mean_mib_s": 2000 / 0.92 / 5 + 1 for k in judge.KERNELS}
        self.judged(judge.stream([line], ECHO, 0.08), "met")
        line["triad_mean_mib_s"] -= 2
        self.judged(judge.stream([line], ECHO, 0.08), "NOT MET")

    def test_jacobi_is_compared_with_plain_memory(self):
        dram = [{"seconds": 1.0, "mflops": 100.0}]
        self.judged(judge.jacobi([{"seconds": 4.0, "mflops": 25.0}], dram), "met")
        self.judged(judge.jacobi([{"seconds": 4.1, "mflops": 25.0}], dram), "NOT MET")

    def test_a_stopped_swap_run_is_as_long_as_it_was_let(self):
        def swapped(seconds, why=None):
            return [{"seconds": seconds, "stopped": why is not None, "stopped_because": why}]

        far = [{"seconds": 2.0}]
        self.judged(judge.swap("x", far, swapped(10.0)), "met")
        self.judged(judge.swap("x", far, swapped(9.0)), "NOT MET")
        self.judged(judge.swap("x", far, swapped(10.0, "> 10 s, stopped")), "met")
        for unknown in (swapped(9.0, "> 9 s, stopped"), swapped(0.0, "ended by the kernel")):
            self.assertTrue(judge.swap("x", far, unknown).verdict.startswith("skipped: "))

    def test_spread_is_of_the_extremes(self):
        self.judged(judge.spread([{"seconds": s} for s in (1.0, 1.02, 1.05)]), "met")
        self.judged(judge.spread([{"seconds": s} for s in (1.0, 1.02, 1.06)]), "NOT MET")

    def test_what_is_sent_is_compared_with_dirty_pages(self):
        said = {"dirty_pages": 10, "seconds": 1.0, "wrong": 0}
        self.judged(judge.sent(said, 12 * 4096, 10), "met")
        self.judged(judge.sent(said, 12 * 4096 + 1, 10), "NOT MET")
        self.judged(judge.sent({**said, "wrong": 1}, 4096, 10), "NOT MET")


class Words(unittest.TestCase):
    def test_the_rows_are_listed(self):
        listed = table("--list")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertEqual(len(listed.stdout.splitlines()), 15)

    def test_wrong_words_get_one_line(self):
        for words in (["--rows", "nothing"], ["--repeats", "0"], ["--wrong"], []):
            said = table(*words)
            self.assertNotEqual(said.returncode, 0, words)
            self.assertEqual(len(said.stderr.splitlines()), 1, said.stderr)


class Answers(unittest.TestCase):
    def test_a_server_s_answers_are_read(self):
        import io
        raw = b"*3\r\n:7\r\n$2\r\nab\r\n+OK\r\n$-1\r\n"
        file = io.BytesIO(raw)
        self.assertEqual(engines._answer(file), [7, "ab", "OK"])
        self.assertEqual(engines._answer(file), "")
        with self.assertRaises(ValueError):
            engines._answer(file)


if __name__ == "__main__":
    unittest.main()
