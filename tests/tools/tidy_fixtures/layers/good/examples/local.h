/* SPDX-License-Identifier: MIT */
#ifndef SINEW_EXAMPLES_LOCAL_H
#define SINEW_EXAMPLES_LOCAL_H


#endif
