/* SPDX-License-Identifier: MIT */
#ifndef OTHER_H
#define OTHER_H
#endif
