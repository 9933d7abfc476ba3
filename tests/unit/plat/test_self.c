/* SPDX-License-Identifier: MIT */
/* What the process sees of its own memory (R64): pages that were never written to are not there. */
#include "plat/self.h"

#include "harness.h"
#include "plat/memory.h"

#include <stdint.h>
#include <string.h>

TEST(memory_that_was_never_written_to_ends_where_the_first_page_was)
{
    const size_t page = sni_plat_page_bytes();
    const size_t pages = 10000;
    void *memory;
    CHECK_EQ(sni_plat_reserve(&memory, pages * page), 0);
    uintptr_t from = (uintptr_t)memory;
    int fd = sni_plat_pages_open();
    CHECK(fd >= 0);
    CHECK_EQ(sni_plat_pages_unwritten(fd, from, pages * page), pages * page);
    ((char *)memory)[7777 * page + 5] = 1;
    CHECK_EQ(sni_plat_pages_unwritten(fd, from, pages * page), 7777 * page);
    CHECK_EQ(sni_plat_pages_unwritten(fd, from, 100 * page + 1), 100 * page);
    CHECK_EQ(sni_plat_pages_unwritten(fd, from + 7777 * page, 2 * page), 0);
    CHECK_EQ(sni_plat_pages_unwritten(fd, from + 7778 * page, 2 * page), 2 * page);
    CHECK_EQ(sni_plat_pages_unwritten(fd, from + 1, 2 * page), 0); /* no page begins there */
    CHECK_EQ(sni_plat_pages_unwritten(-1, from, 2 * page), 0);
    sni_plat_self_close(fd);
    sni_plat_release(memory, pages * page);
}

TEST(memory_is_read_without_a_fault)
{
    const size_t page = sni_plat_page_bytes();
    void *memory;
    char copy[8] = "";
    CHECK_EQ(sni_plat_reserve(&memory, 2 * page), 0);
    strcpy(memory, "there");
    int self = sni_plat_self_open();
    CHECK(self >= 0);
    CHECK_EQ(sni_plat_self_read(self, (uintptr_t)memory, copy, sizeof(copy)), sizeof(copy));
    CHECK_STR_EQ(copy, "there");
    sni_plat_release(memory, 2 * page);
    CHECK_EQ(sni_plat_self_read(self, 8, copy, sizeof(copy)), 0);
    sni_plat_self_close(self);
}
