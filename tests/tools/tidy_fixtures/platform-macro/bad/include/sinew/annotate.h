/* SPDX-License-Identifier: MIT */
#ifndef SINEW_ANNOTATE_H
#define SINEW_ANNOTATE_H

#ifdef _WIN32
#endif

#endif
