/* SPDX-License-Identifier: MIT */
#ifndef SINEW_BASE_X_H
#define SINEW_BASE_X_H

#ifdef SN_DEBUG
#endif

#endif
