/* SPDX-License-Identifier: MIT */
#ifndef SINEW_BASE_TYPO_H
#define SINEW_BASE_TIPO_H
#endif
