"""A control plane for a test: the kube-apiserver and the etcd of the folder KUBEBUILDER_ASSETS. Python's library alone, and openssl."""
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

TOKEN = "a-token-for-tests"


class ControlPlane:
    """`with ControlPlane() as cluster:` starts both programs, and ends them."""

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="envtest-"))
        self.programs = []
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        """@raise RuntimeError when a program did not end by itself, with exit code 0"""
        codes = [_end(program) for program in reversed(self.programs)]
        shutil.rmtree(self.folder)
        if any(codes):
            raise RuntimeError(f"exit codes of kube-apiserver and etcd: {codes}")

    def _start(self):
        etcd, port = f"http://127.0.0.1:{_free_port()}", _free_port()
        self._run("etcd", etcd + "/health", f"--data-dir={self.folder}/etcd", f"--listen-client-urls={etcd}",
                  f"--advertise-client-urls={etcd}", f"--listen-peer-urls=http://127.0.0.1:{_free_port()}")
        key, tokens = self.folder / "sa.key", self.folder / "tokens.csv"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        tokens.write_text(f"{TOKEN},admin,admin,system:masters\n")
        self.url = f"https://127.0.0.1:{port}"
        # The server makes itself a certificate, and a client trusts just this one.
        self._run("kube-apiserver", self.url + "/readyz", f"--etcd-servers={etcd}", f"--cert-dir={self.folder}",
                  f"--secure-port={port}", "--bind-address=127.0.0.1", "--authorization-mode=RBAC", f"--token-auth-file={tokens}",
                  "--service-cluster-ip-range=10.0.0.0/24", "--disable-admission-plugins=ServiceAccount",
                  f"--service-account-issuer={self.url}/", f"--service-account-key-file={key}",
                  f"--service-account-signing-key-file={key}")
        self.trust = ssl.create_default_context(cafile=str(self.folder / "apiserver.crt"))

    def _run(self, name, url, *flags):
        program = subprocess.Popen([pathlib.Path(os.environ["KUBEBUILDER_ASSETS"]) / name, *flags], stderr=subprocess.DEVNULL)
        self.programs.append(program)
        anyone = ssl.create_default_context()
        anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
        for _ in range(1200):
            if program.poll() is not None:
                raise RuntimeError(f"{name} ended with {program.returncode}")
            try:
                with urllib.request.urlopen(url, context=anyone):
                    return
            except OSError:  # not listening, or not ready
                time.sleep(0.1)
        raise RuntimeError(f"{name} is not ready after two minutes")

    def open(self, method, path, body=None, content_type="application/json"):
        """@return the response, which is to be closed @raise urllib.error.HTTPError"""
        headers = {"authorization": f"Bearer {TOKEN}", "content-type": content_type}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        return urllib.request.urlopen(request, context=self.trust)

    def request(self, method, path, body=None, **options):
        """@return what the server answers"""
        with self.open(method, path, body, **options) as response:
            return json.load(response)


def _end(program):
    if program.poll() is None:
        program.send_signal(signal.SIGTERM)
    try:
        return program.wait(60)
    except subprocess.TimeoutExpired:
        program.kill()
        return program.wait()


def _free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
