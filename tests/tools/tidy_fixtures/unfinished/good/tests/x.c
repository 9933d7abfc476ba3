/* SPDX-License-Identifier: MIT */
/* TODO: allowed here */
