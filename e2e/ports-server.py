"""What listens in the sandbox of ports.test.ts: a plain HTTP server, a hostile one, and an echo on ::1."""

import base64, hashlib, socket, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

told = threading.Semaphore(0)


class Plain(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, body, kind="text/plain"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        left, digest = int(self.headers.get("Content-Length", 0)), hashlib.sha256()
        while left > 0:
            part = self.rfile.read(min(left, 1 << 16))
            digest.update(part)
            left -= len(part)
        if self.path == "/next":
            told.release()
        self.answer(digest.hexdigest().encode())

    def do_GET(self):
        if self.path.startswith("/bytes?"):
            return self.answer(b"x" * int(self.path.split("?")[1]))
        if self.path == "/echo":
            return self.websocket()
        if self.path == "/events":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            for number in range(1000):
                self.wfile.write(f"data: {number}\n\n".encode())
                if not told.acquire(timeout=20):
                    return
        self.answer(b"here")

    def websocket(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.send_response(101)
        for name, value in ("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", accept):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.flush()
        head = self.rfile.read(2)
        mask, size = self.rfile.read(4), head[1] & 127
        text = bytes(byte ^ mask[at % 4] for at, byte in enumerate(self.rfile.read(size)))
        self.wfile.write(bytes([0x81, size]) + text)
        self.close_connection = True

    def log_message(self, *_):
        pass


def hostile(peer):
    path = peer.recv(65536).split(b" ")[1]
    ok = b"HTTP/1.1 200 OK\r\n"
    try:
        if path == b"/headers":
            peer.sendall(ok)
            while True:
                peer.sendall(b"X-More: " + b"y" * 4096 + b"\r\n")
        elif path == b"/garbage":
            peer.sendall(b"\0\1\2 no HTTP at all \r\n\r\n")
        elif path == b"/interim":
            while True:
                peer.sendall(b"HTTP/1.1 102 Wait\r\n\r\n")
        elif path == b"/protocol":
            peer.sendall(b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
        elif path == b"/half":
            peer.sendall(ok + b"Content-Length: 100\r\n\r\nhalf")
        elif path == b"/smuggled":
            peer.sendall(ok + b"Content-Length: 3\r\n\r\none" + ok + b"Content-Length: 3\r\n\r\ntwo")
        elif path == b"/endless":
            peer.sendall(ok + b"Content-Length: 1000000000\r\n\r\n")
            while True:
                peer.sendall(b"z" * 65536)
    except OSError:
        pass
    peer.close()


def echo(peer):
    while part := peer.recv(65536):
        peer.sendall(part)
    peer.close()


def serve(address, family, each):
    server = socket.create_server(address, family=family)
    while True:
        threading.Thread(target=each, args=(server.accept()[0],), daemon=True).start()


threading.Thread(target=serve, args=(("127.0.0.1", 8001), socket.AF_INET, hostile)).start()
threading.Thread(target=serve, args=(("::1", 5432), socket.AF_INET6, echo)).start()
ThreadingHTTPServer(("0.0.0.0", 8000), Plain).serve_forever()
