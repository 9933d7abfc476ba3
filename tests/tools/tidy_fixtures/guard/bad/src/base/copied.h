/* SPDX-License-Identifier: MIT */
#ifndef SINEW_X_H
#define SINEW_X_H


#endif
