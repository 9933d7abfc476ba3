// SPDX-License-Identifier: MIT

// The servers of the yardstick on Boost.Asio: serve PORT THREADS echo|http coro|callback.
//
// One io_context, run by all threads. `coro`: a coroutine of C++20 per connection; `callback`: an
// object per connection whose functions are called, which is the fastest that Asio has.
#include "../http.h"

#include <utility> // which Boost's own headers forget

#include <boost/asio.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using failure = boost::system::error_code;

static bool is_http;
static const int backlog = 4096;

// What both forms do with what has come: whether to go on, and what to send.
struct visitor {
    tcp::socket socket;
    std::size_t have = 0;
    std::string answers;
    char buffer[4096];

    explicit visitor(tcp::socket s) : socket(std::move(s))
    {
    }

    asio::mutable_buffer room()
    {
        return is_http ? asio::buffer(buffer + have, HTTP_HEAD_MAX - have) : asio::buffer(buffer);
    }

    bool answer(std::size_t n, asio::const_buffer &out)
    {
        if (!is_http) {
            out = asio::buffer(buffer, n);
            return true;
        }
        std::size_t used;
        have += n;
        int requests = http_requests(buffer, have, &used);
        if (requests < 0)
            return false;
        have -= used;
        std::memmove(buffer, buffer + used, have);
        if (requests <= HTTP_ANSWERS) {
            out = asio::buffer(http_answers, http_portion(requests));
        } else {
            answers.clear();
            for (; requests > 0; requests -= HTTP_ANSWERS)
                answers.append(http_answers, http_portion(requests));
            out = asio::buffer(answers);
        }
        return have < HTTP_HEAD_MAX;
    }
};

struct session : visitor, std::enable_shared_from_this<session> {
    using visitor::visitor;

    void read()
    {
        socket.async_read_some(room(), [me = shared_from_this()](failure e, std::size_t n) {
            asio::const_buffer out;
            if (!e && me->answer(n, out))
                me->write(out);
        });
    }

    void write(asio::const_buffer out)
    {
        asio::async_write(socket, out, [me = shared_from_this()](failure e, std::size_t) {
            if (!e)
                me->read();
        });
    }
};

static void accept_by_callback(tcp::acceptor &acceptor)
{
    acceptor.async_accept([&acceptor](failure e, tcp::socket s) {
        if (!e) {
            s.set_option(tcp::no_delay(true), e);
            std::make_shared<session>(std::move(s))->read();
        }
        accept_by_callback(acceptor);
    });
}

static asio::awaitable<void> talk(tcp::socket socket)
{
    visitor v(std::move(socket));
    for (;;) {
        asio::const_buffer out;
        std::size_t n = co_await v.socket.async_read_some(v.room(), asio::use_awaitable);
        if (!v.answer(n, out))
            co_return;
        co_await asio::async_write(v.socket, out, asio::use_awaitable);
    }
}

static asio::awaitable<void> accept_by_coroutine(asio::io_context &io, tcp::acceptor &acceptor)
{
    for (;;) {
        failure e;
        tcp::socket s = co_await acceptor.async_accept(asio::use_awaitable);
        s.set_option(tcp::no_delay(true), e);
        asio::co_spawn(io, talk(std::move(s)), [](std::exception_ptr) { /* it has gone */ });
    }
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        std::fputs("usage: serve PORT THREADS echo|http coro|callback\n", stderr);
        return 2;
    }
    int threads = std::atoi(argv[2]);
    is_http = std::strcmp(argv[3], "http") == 0;
    asio::io_context io(threads);
    tcp::acceptor acceptor(io);
    acceptor.open(tcp::v4());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind({asio::ip::address_v4::loopback(), (unsigned short)std::atoi(argv[1])});
    acceptor.listen(backlog);
    if (std::strcmp(argv[4], "coro") == 0)
        asio::co_spawn(io, accept_by_coroutine(io, acceptor), asio::detached);
    else
        accept_by_callback(acceptor);
    std::vector<std::thread> others;
    for (int i = 1; i < threads; i++)
        others.emplace_back([&] { io.run(); });
    io.run();
}
