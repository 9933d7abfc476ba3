/* SPDX-License-Identifier: MIT */
/* a file of the fixtures; it says
 * what it is in two lines. */
/* todo is a word, XXXXXX a template, HACKING a page. */
static const char text[] = "TODO";
