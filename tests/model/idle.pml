/* SPDX-License-Identifier: MIT */
/* idle.pml - the idle protocol of src/sched/idle.c as a Promela model, for spin.
 *
 * Each atomic operation of the C code is one step here. LINKS links are pushed by a submitter that
 * never runs any; a worker that has taken one is busy until all have been taken. So all links must
 * be taken at the same time by different workers, which is what "work queued and a worker asleep =>
 * somebody searches" comes to: a lost wake-up is an invalid end state. A worker may also leave its
 * sleep once without a token, as if its deadline had passed (unless PATIENT).
 *
 * Unlike tests/model/test_idle.c this is a drawing of the code, not the code; but it is searched
 * completely, with no bound on preemptions, and for three workers.
 *
 * Mistakes that must be found: NO_LOOK (no look before the park), NO_LOOK_UNLESS_SEARCHED,
 * NO_LOOK_AT_END, NO_FENCE (the push may become visible after the submitter's look). */

#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef LINKS
#define LINKS WORKERS
#endif

short queued = 0;     /* links that others can see */
short unseen = 0;     /* pushed, and still in the submitter's store buffer */
short searching = 0;  /* these two are one word in C */
short sleeping = 0;
bool asleep[WORKERS]; /* the bit map */
bool token[WORKERS];  /* the parkers */
short taken = 0;

#define woken_  searching++; sleeping--
#define asleep_ searching--; sleeping++

/* sni_idle_submit, and the unpark that follows. */
inline submit(i)
{
    do
    :: atomic { searching == 0 && sleeping > 0 -> woken_; }
       i = 0;
       do
       :: i < WORKERS ->
          if
          :: atomic { asleep[i] -> asleep[i] = false; } break
          :: atomic { !asleep[i] -> i++; }
          fi
       :: i == WORKERS -> break
       od;
       if
       :: i < WORKERS -> token[i] = true; break
       :: else -> atomic { asleep_; }
       fi
    :: atomic { !(searching == 0 && sleeping > 0) -> i = WORKERS; } break
    od
}

active proctype submitter()
{
    short pushed = 0;
    short i = 0;
    do
    :: pushed < LINKS ->
       pushed++;
#ifdef NO_FENCE
       unseen++;
#else
       queued++;
#endif
       submit(i)
    :: else -> break
    od
}

/* What lingers in the store buffer becomes visible at some time. */
active proctype store_buffer()
{
end_idle:
    do
    :: atomic { unseen > 0 -> unseen--; queued++; }
    od
}

active [WORKERS] proctype worker()
{
    short me = _pid - 2; /* the submitter and its buffer are 0 and 1 */
    bool search = false;
    bool last = false;
    bool impatient = false;
    bool got = false;
    short i = 0;

#ifndef PATIENT
    if
    :: impatient = true
    :: skip
    fi;
#endif
    do
    :: taken == LINKS -> break
    :: else ->
       if /* sni_idle_begin_search: half of the workers, at least one */
       :: search
       :: atomic { !search && (searching == 0 || 2 * searching < WORKERS) ->
                   searching++; search = true; }
       :: atomic { !search && !(searching == 0 || 2 * searching < WORKERS) -> skip; }
       fi;
       got = false;
       if
       :: search ->
          if
          :: atomic { queued > 0 -> queued--; got = true; }
          :: atomic { queued == 0 -> skip; }
          fi
       :: else
       fi;

       if
       :: got -> /* sni_idle_end_search, the look, and run */
          atomic { searching--; last = (searching == 0); }
#ifndef NO_LOOK_AT_END
          if
          :: last ->
             if
             :: queued > 0 -> submit(i)
             :: queued == 0
             fi
          :: else
          fi;
#endif
          search = false;
          taken++;
          taken == LINKS /* busy until then */
       :: else -> /* sni_idle_sleep, the look, park, sni_idle_woken */
          asleep[me] = true;
          atomic {
              if
              :: search -> asleep_;
              :: else -> sleeping++;
              fi;
              last = (searching == 0);
          }
#if defined(NO_LOOK)
          last = false;
#elif defined(NO_LOOK_UNLESS_SEARCHED)
          last = last && search;
#endif
          if
          :: last && queued > 0
          :: !last || queued == 0 ->
             if
             :: atomic { token[me] -> token[me] = false; }
             :: impatient -> impatient = false /* the deadline */
             :: taken == LINKS                 /* shutdown */
             fi
          fi;
          if
          :: !asleep[me]
          :: asleep[me] ->
             atomic { woken_; }
             if
             :: atomic { asleep[me] -> asleep[me] = false; }
             :: atomic { !asleep[me] -> asleep_; }
             fi
          fi;
          search = true
       fi
    od;
    assert(searching >= 0)
}
