/* SPDX-License-Identifier: MIT */
/* test_reports.c - plain, TAP, JUnit and the log say the same, each in its own well-formed way. */
#include "selftest.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(the_last_plain_line_has_the_totals)
{
    struct command c = victims("'passes*' 'skips*' 'fails_check_l?'");
    const char *last = strstr(c.output, "2 passed, 2 failed, 2 skipped\n");
    CHECK(last != NULL);
    CHECK_EQ(last[-1], '\n');
    CHECK_STR_EQ(last, "2 passed, 2 failed, 2 skipped\n");
    command_finish(&c);
}

TEST(a_passing_test_has_a_line_with_its_time)
{
    struct command c = victims("'*asses_too'");
    int ms = -1;
    CHECK_EQ(sscanf(c.output, "ok    passes_too (%d ms)\n", &ms), 1);
    CHECK_GE(ms, 0);
    command_finish(&c);
}

TEST(long_output_of_a_failing_test_is_cut_at_its_start)
{
    struct command c = victims("prints_three_mebibytes_and_fails");
    CHECK_STR_HAS(c.output, "FAIL  prints_three_mebibytes_and_fails: ");
    CHECK_STR_HAS(c.output, "bytes left out]\n");
    CHECK_STR_HAS(c.output, "after much output\n");
    CHECK_LT(c.output_bytes, 100000);
    command_finish(&c);
}

/* Each line of TAP is a version, the plan, a numbered result or a comment. */
TEST(tap_is_well_formed)
{
    struct command c = victims("--tap 'passes*' 'skips' 'fails_check_l?' leaks_a_descriptor");
    int results = 0;
    int failed = 0;
    CHECK_EQ(strncmp(c.output, "TAP version 13\n1..6\n", 20), 0);
    for (char *line = strtok(c.output + 20, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        int number = -1;
        if (line[0] == '#')
            continue;
        int not_ok = strncmp(line, "not ", 4) == 0;
        CHECK_EQ(sscanf(line + 4 * not_ok, "ok %d - ", &number), 1);
        CHECK_EQ(number, ++results);
        failed += not_ok;
    }
    CHECK_EQ(results, 6);
    CHECK_EQ(failed, 3);
    CHECK_EQ(c.status, 1);
    command_finish(&c);
}

TEST(tap_marks_skips_and_explains_failures)
{
    struct command c = victims("--tap -j 1 'skips' 'fails_check_ne' --seed 3 fails_with_a_seed");
    CHECK_STR_HAS(c.output, " - skips # SKIP no moon here\n");
    CHECK_STR_HAS(c.output, " - fails_check_ne\n# ");
    CHECK_STR_HAS(c.output, "CHECK_NE(5, 5): left is 5, right is 5\n");
    CHECK_STR_HAS(c.output, "# | replay with: harness_victims --seed 3 fails_with_a_seed\n");
    CHECK_STR_HAS(c.output, "# 0 passed, 2 failed, 1 skipped\n");
    command_finish(&c);
}

/* --- JUnit: a parser for just enough of XML to find what is wrong with it --------------------- */

struct xml {
    const char *at;
    const char *open[8]; /* names of the elements around `at`, innermost last */
    size_t open_bytes[8];
    size_t depth;
    int elements;
};

static void xml_text(struct xml *xml, const char *stop)
{
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;"};
    while (*xml->at != '\0' && strchr(stop, *xml->at) == NULL) {
        unsigned char c = (unsigned char)*xml->at;
        CHECK(c >= 0x20 || c == '\n' || c == '\t');
        CHECK(c != '<' && c != '>');
        size_t bytes = 1;
        if (c == '&') {
            for (size_t i = 0; i < 4; i++)
                if (strncmp(xml->at, entities[i], strlen(entities[i])) == 0)
                    bytes = strlen(entities[i]);
            CHECK_GT(bytes, 1);
        }
        xml->at += bytes;
    }
}

static size_t xml_name(struct xml *xml)
{
    size_t bytes = 0;
    while (isalnum((unsigned char)xml->at[bytes]))
        bytes++;
    CHECK_GT(bytes, 0);
    xml->at += bytes;
    return bytes;
}

static void xml_expect(struct xml *xml, const char *text)
{
    if (strncmp(xml->at, text, strlen(text)) != 0)
        FAIL("expected %s, found %.40s", text, xml->at);
    xml->at += strlen(text);
}

static void xml_attributes(struct xml *xml)
{
    while (*xml->at == ' ') {
        xml->at++;
        xml_name(xml);
        xml_expect(xml, "=\"");
        xml_text(xml, "\"<");
        xml_expect(xml, "\"");
    }
}

static void xml_tag(struct xml *xml)
{
    xml_expect(xml, "<");
    if (*xml->at == '/') {
        xml->at++;
        CHECK_GT(xml->depth, 0);
        xml->depth--;
        const char *name = xml->at;
        CHECK_EQ(xml_name(xml), xml->open_bytes[xml->depth]);
        CHECK_MEM_EQ(name, xml->open[xml->depth], xml->open_bytes[xml->depth]);
        xml_expect(xml, ">");
        return;
    }
    CHECK_LT(xml->depth, 8);
    xml->open[xml->depth] = xml->at;
    xml->open_bytes[xml->depth] = xml_name(xml);
    xml->elements++;
    xml_attributes(xml);
    if (*xml->at == '/')
        xml_expect(xml, "/>");
    else {
        xml_expect(xml, ">");
        xml->depth++;
    }
}

static int xml_count_elements(const char *text)
{
    struct xml xml = {.at = text};
    xml_expect(&xml, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    do {
        xml_tag(&xml);
        xml_text(&xml, "<");
    } while (xml.depth > 0);
    CHECK_STR_EQ(xml.at, "");
    return xml.elements;
}

TEST(junit_is_well_formed_whatever_a_test_prints)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/junit.xml", temp_dir());
    struct command c = victims("--junit %s 'passes*' 'skips' prints_what_xml", path);
    CHECK_EQ(c.status, 1);
    command_finish(&c);
    char *text = read_file(path);
    /* testsuites, testsuite, 4 testcases, 1 skipped, 1 failure */
    CHECK_EQ(xml_count_elements(text), 8);
    CHECK_STR_HAS(text, "<testsuite name=\"harness_victims\" tests=\"4\" failures=\"1\" "
                        "errors=\"0\" skipped=\"1\" time=\"");
    CHECK_STR_HAS(text, "<skipped message=\"no moon here\"/>");
    CHECK_STR_HAS(text, "<testcase classname=\"harness_victims\" name=\"passes_too\" file=\"");
    CHECK_STR_HAS(text, "&lt;angry &amp; &quot;quoted&quot; two lines&gt;\">");
    CHECK_STR_HAS(text, "&lt;a b=&quot;&amp;'&quot;&gt;]]&gt; ??[0m ?"
                        "?( \xc3\xa4 ??? ? end");
    free(text);
}

/* A second opinion on the hand parser, where there is one to be had. */
TEST(junit_satisfies_a_real_parser)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/junit.xml", temp_dir());
    require_tool("python3", "test");
    struct command c = victims(
        "--junit %s 'passes*' 'skips' prints_what_xml leaks_a_descriptor >/dev/null; "
        "python3 -c 'import sys, xml.dom.minidom as d; "
        "print(len(d.parse(sys.argv[1]).getElementsByTagName(\"testcase\")), \"cases\")' %s",
        path, path);
    CHECK_STR_EQ(c.output, "5 cases\n");
    command_finish(&c);
}

TEST(strict_mode_turns_skips_into_failures)
{
    victims_say(1, "FAIL  skips: skipped although it should run here: no moon here\n",
                "SINEW_TEST_STRICT=1 'skips'");
    victims_say(1, "0 passed, 1 failed, 0 skipped\n", "SINEW_TEST_STRICT=1 'skips'");
    victims_say(0, "0 passed, 0 failed, 1 skipped\n", "SINEW_TEST_STRICT=0 'skips'");
}

TEST(the_log_is_appended_one_line_per_test)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/log", temp_dir());
    for (int i = 0; i < 2; i++) {
        struct command c = victims("SINEW_TEST_LOG=%s -j 2 '*asses' skips dies_of_sigsegv "
                                   "prints_what_xml",
                                   path);
        command_finish(&c);
    }
    char *text = read_file(path);
    CHECK_EQ(occurrences(text, "\n"), 8);
    CHECK_EQ(occurrences(text, "pass\tharness_victims/passes\n"), 2);
    CHECK_EQ(occurrences(text, "skip\tharness_victims/skips\tno moon here\n"), 2);
    CHECK_EQ(occurrences(text, "fail\tharness_victims/dies_of_sigsegv\tkilled by SIGSEGV\n"), 2);
    CHECK_EQ(occurrences(text, "<angry & \"quoted\" two lines>\n"), 2);
    free(text);
}
