// SPDX-License-Identifier: MIT
//! The servers of the yardstick on Tokio: a task per connection on the multi-thread runtime.
//!
//!     serve_tokio PORT WORKERS echo|http
//!
//! The accept loop is a spawned task, so that only the workers ever run code.
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

const BUFFER_BYTES: usize = 4096;
const HEAD_MAX: usize = 2048;
const BACKLOG: u32 = 4096;
const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello";

async fn echo(mut conn: TcpStream) {
    let mut buffer = vec![0u8; BUFFER_BYTES];
    loop {
        match conn.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(n) => {
                if conn.write_all(&buffer[..n]).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// How many whole requests there are, and where the last one ends; None if there is something else.
fn requests(bytes: &[u8]) -> Option<(usize, usize)> {
    let (mut found, mut used) = (0, 0);
    while used < bytes.len() {
        let left = &bytes[used..];
        let known = left.len().min(4);
        if left[..known] != b"GET "[..known] {
            return None;
        }
        match left.windows(4).position(|w| w == b"\r\n\r\n") {
            Some(at) => used += at + 4,
            None => break,
        }
        found += 1;
    }
    Some((found, used))
}

async fn http(mut conn: TcpStream) {
    let mut buffer = vec![0u8; HEAD_MAX];
    let mut have = 0;
    while have < HEAD_MAX {
        match conn.read(&mut buffer[have..]).await {
            Ok(0) | Err(_) => return,
            Ok(n) => have += n,
        }
        let Some((found, used)) = requests(&buffer[..have]) else {
            return;
        };
        let done = match found {
            1 => conn.write_all(ANSWER).await,
            _ => conn.write_all(&ANSWER.repeat(found)).await,
        };
        if done.is_err() {
            return;
        }
        buffer.copy_within(used..have, 0);
        have -= used;
    }
}

async fn accept(port: u16, is_http: bool) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(([127, 0, 0, 1], port).into()).unwrap();
    let listener = socket.listen(BACKLOG).unwrap();
    loop {
        if let Ok((conn, _)) = listener.accept().await {
            let _ = conn.set_nodelay(true);
            if is_http {
                tokio::spawn(http(conn));
            } else {
                tokio::spawn(echo(conn));
            }
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.len() < 4 {
        eprintln!("usage: serve_tokio PORT WORKERS echo|http");
        std::process::exit(2);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(args[2].parse().unwrap())
        .enable_io()
        .build()
        .unwrap();
    let accepting = runtime.spawn(accept(args[1].parse().unwrap(), args[3] == "http"));
    let _ = runtime.block_on(accepting);
}
