// SPDX-License-Identifier: MIT
// throw.cpp - what test_exceptions.c runs on fibers: exceptions, caught and not, with a
// destructor and a fiber switch on their way.
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>

extern "C" void *yield_now(void *value);
extern "C" void throw_and_catch(void *value);
extern "C" void throw_only(void *value);
extern "C" void catch_outside(void *value);
extern "C" void sni_context_call(void (*fn)(void *), void *pass);
extern "C" int count_destroyed(void);

namespace
{
int destroyed;

struct witness {
    ~witness()
    {
        destroyed++;
    }
};

[[gnu::noinline]] void sink(int depth)
{
    witness w;
    if (depth == 0) {
        yield_now(nullptr);
        throw std::runtime_error("from below");
    }
    sink(depth - 1);
}
} // namespace

// Several fibers are at the bottom, or in a handler, at the same time.
extern "C" void throw_and_catch(void *value)
{
    int depth = static_cast<int>(reinterpret_cast<std::intptr_t>(value));
    try {
        sink(depth);
    } catch (const std::exception &e) {
        std::string said = e.what();
        std::printf("caught %d %s\n", depth, said.c_str());
    }
}

extern "C" void throw_only(void *value)
{
    (void)value;
    throw std::runtime_error("nobody catches");
}

// Who drives a runtime may catch whatever it likes.
extern "C" void catch_outside(void *value)
{
    try {
        sni_context_call(throw_only, value);
    } catch (...) {
        std::puts("caught outside");
    }
}

extern "C" int count_destroyed(void)
{
    return destroyed;
}
