"""PostgreSQL servers as processes, each in a temporary folder."""
import atexit, os, shutil, signal, socket, subprocess, tempfile, threading, time
from rig import PATIENCE, STARTED, database_programs, free_port


class Postgres:
    """A server that runs as another user than root and is reachable by its socket and 127.0.0.1 only."""

    def __init__(self, settings=(), copies=None, place=None, log_place=None, made_with=()):
        """Creates a new server, or one that starts as a standby of the server `copies`.

        Its data and its log may be placed in other folders (`place`, `log_place`). `made_with` goes to
        initdb."""
        self.programs = database_programs()
        self.port = free_port()
        self.settings = ["listen_addresses=127.0.0.1", f"port={self.port}", *settings]
        self.folder = tempfile.mkdtemp(prefix="belfry-postgres-")
        self.data = (place or self.folder) + "/data"
        self.user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        for folder in (self.folder, place, log_place) if os.getuid() == 0 else ():
            if folder:
                shutil.chown(folder, "postgres")
        if log_place:
            made_with = ["-X", log_place + "/log", *made_with]
        if copies:
            self.run("pg_basebackup", "-D", self.data, "-R", "-X", "stream", "-d",
                     f"host={copies.folder} port={copies.port} user=postgres "
                     f"application_name=standby{self.port}")
        else:
            self.run("initdb", "-D", self.data, "-N", "-E", "UTF8", "--locale=C.UTF-8",
                     "-U", "postgres", "-A", "trust", *made_with)
        atexit.register(self.leave)
        self.start()

    def leave(self):
        """Ends the server after a failed campaign, of which only the starting process would be killed."""
        if self.process.poll() is None:
            self.crash()

    def start(self):
        arguments = [self.programs + "/postgres", "-D", self.data, "-k", self.folder]
        for setting in self.settings:
            arguments += ["-c", setting]
        self.process = subprocess.Popen(
            self.user + arguments, stdout=subprocess.DEVNULL,
            stderr=open(self.folder + "/log", "ab"))
        STARTED.append(self.process)
        self.wait()

    def run(self, program, *arguments):
        subprocess.run(self.user + [self.programs + "/" + program, *arguments], check=True,
                       stdout=subprocess.DEVNULL)

    def wait(self):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if subprocess.run(self.psql("SELECT 1"), capture_output=True).returncode == 0:
                return
            time.sleep(0.05)
        raise SystemExit("PostgreSQL did not start")

    def psql(self, text):
        return ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", self.folder,
                "-p", str(self.port), "-U", "postgres", "-c", text]

    def sql(self, text):
        done = subprocess.run(self.psql(text), capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"psql: {done.stderr}")
        return done.stdout.strip()

    def until(self, question, answer, bound=PATIENCE):
        end = time.monotonic() + bound
        while self.sql(question) != answer:
            if time.monotonic() > end:
                raise SystemExit(f"not within {bound} s: {question}")
            time.sleep(0.02)

    def crash(self):
        """Kills all processes of the server at once, as in a power cut, except that the disk keeps everything
        written."""
        main = int(open(self.data + "/postmaster.pid").readline())
        for process in [main] + [int(child) for child in subprocess.run(
                ["pgrep", "-P", str(main)], capture_output=True, text=True).stdout.split()]:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        # Otherwise the next start believes that the server is still running.
        os.remove(self.data + "/postmaster.pid")

    def promote(self):
        self.run("pg_ctl", "-D", self.data, "promote")

    def stop(self):
        if self.process.poll() is None:
            subprocess.run(self.user + [self.programs + "/pg_ctl", "-D", self.data, "-m", "fast",
                                        "stop"], stdout=subprocess.DEVNULL)
            self.process.wait()
        shutil.rmtree(self.folder)


class Wire:
    """A path to a server that can be cut: what is sent then is held back, and neither side is told."""

    def __init__(self, port):
        self.target, self.is_cut, self.pairs = port, threading.Event(), []
        # The port must not be one that the kernel gives to clients, which might take it while it is free.
        self.port = free_port()
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()
                continue
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self.pass_on, args=(source, sink), daemon=True).start()

    def pass_on(self, source, sink):
        try:
            while data := source.recv(65536):
                while self.is_cut.is_set():
                    time.sleep(0.01)
                sink.sendall(data)
        except OSError:
            pass
        while self.is_cut.is_set():
            time.sleep(0.01)
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def end(self):
        """Refuses connections, as the machine of a stopped server does."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def begin_again(self):
        """Accepts connections again, as the machine of a restarted server does."""
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.accept, daemon=True).start()

    def cut(self):
        self.is_cut.set()

    def mend(self):
        self.is_cut.clear()
