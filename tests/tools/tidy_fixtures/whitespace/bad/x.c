/* SPDX-License-Identifier: MIT */
int a; 
int	b;
