/* SPDX-License-Identifier: MIT */
#ifndef SINEW_ERRNO_H
#define SINEW_ERRNO_H

#ifndef ESRCH
#define ESRCH 3
#endif

#endif
