/* SPDX-License-Identifier: MIT */
/* a file of the fixtures; it says
 * what it is in two lines. */
_Thread_local struct sni_executor *sni_current;
