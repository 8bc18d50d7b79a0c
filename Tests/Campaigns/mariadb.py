"""A MariaDB server of Debian's package as a process, in a temporary folder."""
import glob, os, shutil, subprocess, tempfile, time
from rig import PATIENCE, STARTED, free_port


class MariaDB:
    """A server that runs as another user than root and is reachable by its socket and 127.0.0.1 only."""

    def __init__(self, configuration, zone):
        """Starts a server; `configuration` is a section [mysqld], to which the paths and the time zone are
        added."""
        self.port, self.folder = free_port(), tempfile.mkdtemp(prefix="belfry-mariadb-")
        self.socket = self.folder + "/socket"
        self.settings = self.folder + "/my.cnf"
        with open(self.settings, "w") as file:
            file.write(f"{configuration}\n"
                       f"datadir = {self.folder}/data\nsocket = {self.socket}\nport = {self.port}\n"
                       f"pid-file = {self.folder}/pid\nlog-error = {self.folder}/log.err\n"
                       f"tmpdir = {self.folder}\n"
                       f"bind-address = 127.0.0.1\nskip-name-resolve\ndefault-time-zone = {zone}\n"
                       "innodb-buffer-pool-size = 64M\ninnodb-lock-wait-timeout = 2\n")
        self.user = []
        if os.getuid() == 0:
            self.user = ["--user=mysql"]
            shutil.chown(self.folder, "mysql")
        subprocess.run(["mariadb-install-db", f"--defaults-file={self.settings}", *self.user,
                        "--auth-root-authentication-method=normal", "--skip-test-db"], check=True,
                       stdout=subprocess.DEVNULL)
        self.start()

    @staticmethod
    def missing():
        """Returns the package that is missing, if any."""
        return [name for name in ("mariadbd", "mariadb", "mariadb-install-db")
                if not (shutil.which(name) or glob.glob("/usr/sbin/" + name))]

    def start(self):
        self.process = subprocess.Popen(
            [shutil.which("mariadbd") or "/usr/sbin/mariadbd", f"--defaults-file={self.settings}",
             *self.user], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        STARTED.append(self.process)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            if subprocess.run(self.client("-e", "SELECT 1"), capture_output=True).returncode == 0:
                return
            time.sleep(0.05)
        raise SystemExit(f"MariaDB did not start; see {self.folder}/log.err")

    def client(self, *more):
        return ["mariadb", "--no-defaults", "--default-character-set=utf8mb4", "-S", self.socket,
                "-u", "root", "-B", "-N", *more]

    def sql(self, text, database="mysql"):
        """Runs statements, and returns the rows of their results as lists of texts."""
        done = subprocess.run(self.client(database), input=text, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"mariadb: {done.stderr}")
        return [line.split("\t") for line in done.stdout.splitlines()]

    def writer(self, database):
        """Starts a client that reads statements and ends at the first that is refused."""
        writer = subprocess.Popen(self.client("--unbuffered", "--skip-reconnect", database), text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL)
        STARTED.append(writer)
        return writer

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE)
        shutil.rmtree(self.folder)
