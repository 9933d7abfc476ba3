// SPDX-License-Identifier: MIT

// The servers of the yardstick on Java's virtual threads, one per connection; plain blocking sockets.
//
//     java -Djdk.virtualThreadScheduler.parallelism=W ... Serve PORT WORKERS echo|http

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

final class Serve {
    private static final int BUFFER_BYTES = 4096;
    private static final int HEAD_MAX = 2048;
    private static final int BACKLOG = 4096;
    private static final byte[] GET = "GET ".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] ANSWER =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"
            .getBytes(StandardCharsets.US_ASCII);

    static void echo(InputStream in, OutputStream out) throws IOException {
        byte[] buffer = new byte[BUFFER_BYTES];
        int n;
        while ((n = in.read(buffer)) > 0) out.write(buffer, 0, n);
    }

    static boolean isGet(byte[] b, int from, int to) {
        for (int i = 0; i < GET.length && from + i < to; i++)
            if (b[from + i] != GET[i]) return false;
        return true;
    }

    /** Where the head that begins at `from` ends, behind its empty line; -1: nowhere yet. */
    static int endOfHead(byte[] b, int from, int to) {
        for (int i = from + 3; i < to; i++)
            if (b[i] == '\n' && b[i - 1] == '\r' && b[i - 2] == '\n' && b[i - 3] == '\r') return i + 1;
        return -1;
    }

    static void http(InputStream in, OutputStream out) throws IOException {
        byte[] buffer = new byte[HEAD_MAX];
        int have = 0;
        while (have < HEAD_MAX) {
            int n = in.read(buffer, have, HEAD_MAX - have);
            if (n <= 0) return;
            have += n;
            int used = 0;
            int end;
            while (isGet(buffer, used, have) && (end = endOfHead(buffer, used, have)) > 0) {
                out.write(ANSWER);
                used = end;
            }
            if (!isGet(buffer, used, have)) return;
            System.arraycopy(buffer, used, buffer, 0, have - used);
            have -= used;
        }
    }

    static void talk(Socket socket, boolean isHttp) {
        try (socket) {
            socket.setTcpNoDelay(true);
            if (isHttp) http(socket.getInputStream(), socket.getOutputStream());
            else echo(socket.getInputStream(), socket.getOutputStream());
        } catch (IOException gone) {
            // it is no harm to the others
        }
    }

    public static void main(String[] args) throws Exception {
        boolean isHttp = args[2].equals("http");
        Thread.startVirtualThread(() -> {
            try (ServerSocket listener = new ServerSocket(
                     Integer.parseInt(args[0]), BACKLOG, InetAddress.getByName("127.0.0.1"))) {
                for (;;) {
                    Socket socket = listener.accept();
                    Thread.startVirtualThread(() -> talk(socket, isHttp));
                }
            } catch (IOException e) {
                System.err.println("java: " + e);
                Runtime.getRuntime().halt(1);
            }
        }).join();
    }
}
