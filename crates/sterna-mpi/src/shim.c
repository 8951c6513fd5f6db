/* What Sterna needs of MPI, behind functions of plain C: handles and constants differ between MPIs, and only their headers know them.
 *
 * Waiting is by looking, with sleeps that grow to a sixteenth of the time waited so far: a rank that waits leaves its core to others, as
 * while the first one trains, and loses little by it. Where ranks share cores they sleep soon: a partner that only wants a core comes to it
 * when they give way, and one that works on is served better by sleep, since the system lets those that slept go first. A neighbour, a rank
 * on the same machine, that is gone ends the wait.
 *
 * What began this process, the launcher or what it left on this machine, may be gone as well: then nobody would end the ranks, and they stop
 * as if they had been asked to.
 *
 * Where the launcher lets ranks outlive each other (`mpirun --with-ft ulfm` of Open MPI 5), those that are left can go on by themselves. MPI has
 * functions for that which many an MPI lacks, so they are looked for in the one that is running, whichever the program was built with. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { FALLEN = -1, NO_MEMORY = -2, STUCK = -3 };

/* Seconds of looking without a sleep where ranks have cores of their own and where they share them, of the shortest and the longest sleep,
 * and between two looks at the neighbours. */
static const double AWAKE = 200e-6, AWAKE_SHARED = 50e-6, SHORTEST_SLEEP = 10e-6, LONGEST_SLEEP = 1e-3, NEIGHBOURS = 0.1;

static MPI_Comm ours;
/* Whether MPI was begun here, and not by another part of the program. */
static int is_ours;

/* What is on its way to other ranks, in copies that stay until it has left. */
enum { SENDS = 256 };
static struct send {
    MPI_Request request;
    void *bytes;
    int room;
} sends[SENDS];
static int next_send;

static int64_t *neighbours;
static int neighbour_count;
static int share_cores;
static volatile sig_atomic_t asked;
static pid_t began_by;

/* What a rank needs to outlive others, where it may: no exchange goes on, who is gone, what those that are left make of it, a world without
 * the dead. */
static struct survival {
    int (*revoke)(MPI_Comm);
    int (*is_revoked)(MPI_Comm, int *);
    int (*get_failed)(MPI_Comm, MPI_Group *);
    int (*agree)(MPI_Comm, int *);
    int (*shrink)(MPI_Comm, MPI_Comm *);
} survival;
static int survives;

/* Seconds in which what was on its way has come to an end after no exchange goes on. */
static const double SETTLES = 30.0;

static void look_for_survival(void) {
    const char *enabled = getenv("OMPI_MCA_mpi_ft_enable");
    if (enabled == NULL || (strcmp(enabled, "1") != 0 && strcmp(enabled, "true") != 0)) {
        return;
    }
    *(void **)&survival.revoke = dlsym(RTLD_DEFAULT, "MPIX_Comm_revoke");
    *(void **)&survival.is_revoked = dlsym(RTLD_DEFAULT, "MPIX_Comm_is_revoked");
    *(void **)&survival.get_failed = dlsym(RTLD_DEFAULT, "MPIX_Comm_get_failed");
    *(void **)&survival.agree = dlsym(RTLD_DEFAULT, "MPIX_Comm_agree");
    *(void **)&survival.shrink = dlsym(RTLD_DEFAULT, "MPIX_Comm_shrink");
    survives = survival.revoke != NULL && survival.is_revoked != NULL && survival.get_failed != NULL && survival.agree != NULL &&
               survival.shrink != NULL;
}

static void hear_signal(int number) {
    (void)number;
    asked = 1;
}

static void count_ranks(int *rank, int *ranks) {
    MPI_Comm_set_errhandler(ours, MPI_ERRORS_RETURN);
    MPI_Comm_rank(ours, rank);
    MPI_Comm_size(ours, ranks);
}

/* Begins, with calls from any thread but one at a time; SIGUSR1 asks to stop from now on, since launchers pass it on. */
int sterna_mpi_start(int *rank, int *ranks) {
    int given, begun, code = MPI_Initialized(&begun);
    if (code == MPI_SUCCESS && begun) {
        code = MPI_Query_thread(&given);
    } else if (code == MPI_SUCCESS) {
        code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given);
        is_ours = 1;
    }
    if (code == MPI_SUCCESS) {
        code = MPI_Comm_dup(MPI_COMM_WORLD, &ours);
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    for (int i = 0; i < SENDS; i++) {
        sends[i].request = MPI_REQUEST_NULL;
    }
    look_for_survival();
    count_ranks(rank, ranks);
    began_by = getppid();
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = hear_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, NULL);
    return given < MPI_THREAD_SERIALIZED ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* Whether what began this process is gone, which then has another parent. */
static int is_orphan(void) {
    return getppid() != began_by;
}

int sterna_mpi_is_asked_to_stop(void) {
    return asked || is_orphan();
}

/* The machine's name, at most `room` bytes with the last 0. */
void sterna_mpi_host(char *out, int room) {
    char name[MPI_MAX_PROCESSOR_NAME + 1] = {0};
    int length;
    MPI_Get_processor_name(name, &length);
    strncpy(out, name, room - 1);
}

/* Which cores this process may use, a bit each; all 0 where the system does not tell. */
void sterna_mpi_cores(uint64_t out[16]) {
    memset(out, 0, 16 * sizeof *out);
#ifdef __linux__
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        memcpy(out, &set, sizeof set < 128 ? sizeof set : 128);
    }
#endif
}

/* What an error of MPI means. */
void sterna_mpi_meaning(int code, char *out, int room) {
    char text[MPI_MAX_ERROR_STRING + 1] = {0};
    int length;
    MPI_Error_string(code, text, &length);
    strncpy(out, text, room - 1);
}

/* Processes of the ranks on this machine, and whether those that use the cores of this one are more than these. */
void sterna_mpi_watch(const int64_t *processes, int count, int shares) {
    free(neighbours);
    neighbours = malloc(count * sizeof *neighbours);
    neighbour_count = neighbours == NULL ? 0 : count;
    for (int i = 0; i < neighbour_count; i++) {
        neighbours[i] = processes[i];
    }
    share_cores = shares;
}

/* Whether a process is gone. */
int sterna_mpi_is_gone(int64_t process) {
    return kill((pid_t)process, 0) != 0 && errno == ESRCH;
}

/* Whether a rank is known to be gone, here or on another machine: from now on no rank's exchange goes on, so that all of them learn of it. */
static int is_lost(void) {
    int lost = 0;
    for (int i = 0; i < neighbour_count && !lost; i++) {
        lost = sterna_mpi_is_gone(neighbours[i]);
    }
    if (survives) {
        MPI_Group failed;
        int revoked = 0, count = 0;
        survival.is_revoked(ours, &revoked);
        if (survival.get_failed(ours, &failed) == MPI_SUCCESS) {
            MPI_Group_size(failed, &count);
            MPI_Group_free(&failed);
        }
        lost = lost || revoked || count > 0;
        if (lost && !revoked) {
            survival.revoke(ours);
        }
    }
    return lost;
}

/* What an error of MPI is, where one may be the death of a rank. */
static int what(int code) {
    return code != MPI_SUCCESS && survives && is_lost() ? FALLEN : code;
}

/* A wait, and when the neighbours were last looked at. */
struct wait {
    double begin, looked;
};

static struct wait begin_wait(void) {
    double now = MPI_Wtime();
    struct wait wait = {now, now};
    return wait;
}

/* Between two looks at what is waited for. */
static int rest(struct wait *wait) {
    double now = MPI_Wtime(), waited = now - wait->begin;
    if (waited < (share_cores ? AWAKE_SHARED : AWAKE)) {
        sched_yield();
        return MPI_SUCCESS;
    }
    if (now - wait->looked > NEIGHBOURS) {
        wait->looked = now;
        if (is_lost()) {
            return FALLEN;
        }
    }
    double sleep = waited / 16 < SHORTEST_SLEEP ? SHORTEST_SLEEP : waited / 16 < LONGEST_SLEEP ? waited / 16 : LONGEST_SLEEP;
    struct timespec time = {0, (long)(1e9 * sleep)};
#ifdef __linux__
    /* The system would round it up to more than it is. */
    prctl(PR_SET_TIMERSLACK, 1000UL);
#endif
    nanosleep(&time, NULL);
    return MPI_SUCCESS;
}

/* After no exchange goes on, what was on its way ends: only then its memory is its owner's again. */
static int let_go(MPI_Request *request) {
    double begin = MPI_Wtime();
    while (*request != MPI_REQUEST_NULL) {
        int done = 0;
        if (MPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done) {
            break;
        }
        if (MPI_Wtime() - begin > SETTLES) {
            return STUCK;
        }
    }
    *request = MPI_REQUEST_NULL;
    return FALLEN;
}

static int wait_for(MPI_Request *request) {
    struct wait wait = begin_wait();
    for (;;) {
        int done = 0, code = what(MPI_Test(request, &done, MPI_STATUS_IGNORE));
        if (code == MPI_SUCCESS && !done) {
            code = rest(&wait);
        }
        if (code == FALLEN && survives) {
            return let_go(request);
        }
        if (code != MPI_SUCCESS || done) {
            return code;
        }
    }
}

/* What a call began, waited for. */
static int complete(int code, MPI_Request *request) {
    code = what(code);
    return code == MPI_SUCCESS ? wait_for(request) : code;
}

/* So many bytes to another rank, of a kind; it does not wait until they are heard, but for what was told SENDS calls ago. */
int sterna_mpi_tell(int to, int kind, const void *bytes, int size) {
    struct send *send = &sends[next_send];
    int code = wait_for(&send->request);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (send->room < size) {
        void *room = realloc(send->bytes, size);
        if (room == NULL) {
            return NO_MEMORY;
        }
        send->bytes = room;
        send->room = size;
    }
    memcpy(send->bytes, bytes, size);
    next_send = (next_send + 1) % SENDS;
    return what(MPI_Isend(send->bytes, size, MPI_BYTE, to, kind, ours, &send->request));
}

/* What a rank tells this one next: who, of what kind, and how many bytes; nobody, -1, where there is nothing and it is not waited for. */
int sterna_mpi_next(int waits, int *from, int *kind, int *size) {
    struct wait wait = begin_wait();
    for (;;) {
        MPI_Status status;
        int there = 0, code = what(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, ours, &there, &status));
        if (code == MPI_SUCCESS && there) {
            *from = status.MPI_SOURCE;
            *kind = status.MPI_TAG;
            return MPI_Get_count(&status, MPI_BYTE, size);
        }
        if (code == MPI_SUCCESS && !waits) {
            *from = -1;
            return code;
        }
        if (code == MPI_SUCCESS) {
            code = rest(&wait);
        }
        if (code != MPI_SUCCESS) {
            return code;
        }
    }
}

/* Those bytes. */
int sterna_mpi_hear(int from, int kind, void *bytes, int size) {
    MPI_Request request;
    return complete(MPI_Irecv(bytes, size, MPI_BYTE, from, kind, ours, &request), &request);
}

/* So many bytes from each rank to all. */
int sterna_mpi_all(const void *own, int size, void *all) {
    MPI_Request request;
    return complete(MPI_Iallgather(own, size, MPI_BYTE, all, size, MPI_BYTE, ours, &request), &request);
}

/* Bytes of each rank, to their places, on all. */
int sterna_mpi_gather(const void *own, int size, void *all, const int *sizes, const int *places) {
    MPI_Request request;
    return complete(MPI_Iallgatherv(own, size, MPI_BYTE, all, sizes, places, MPI_BYTE, ours, &request), &request);
}

/* The same, on the first rank alone. */
int sterna_mpi_gather_to_first(const void *own, int size, void *all, const int *sizes, const int *places) {
    MPI_Request request;
    return complete(MPI_Igatherv(own, size, MPI_BYTE, all, sizes, places, MPI_BYTE, 0, ours, &request), &request);
}

/* Bytes of the first rank to all. */
int sterna_mpi_from_first(void *bytes, int size) {
    MPI_Request request;
    return complete(MPI_Ibcast(bytes, size, MPI_BYTE, 0, ours, &request), &request);
}

/* Whether this rank may outlive others. */
int sterna_mpi_survives(void) {
    return survives;
}

/* Those that are left agree on what has happened, all of them in the same call: whether any has seen a rank die. If so they are fewer from now on. */
int sterna_mpi_regroup(int lost, int *regrouped, int *rank, int *ranks) {
    int whole = !lost;
    *regrouped = 0;
    if (survival.agree(ours, &whole) == MPI_SUCCESS && whole) {
        return MPI_SUCCESS;
    }
    survival.revoke(ours);
    for (int i = 0; i < SENDS; i++) {
        if (let_go(&sends[i].request) == STUCK) {
            return STUCK;
        }
    }
    MPI_Comm before = ours;
    int code = survival.shrink(before, &ours);
    if (code == MPI_SUCCESS) {
        MPI_Comm_free(&before);
        count_ranks(rank, ranks);
        *regrouped = 1;
    }
    return code;
}

/* All ranks end well; where one has failed, what was told may never be heard. */
void sterna_mpi_end(int failed) {
    for (int i = 0; i < SENDS; i++) {
        if (!failed && wait_for(&sends[i].request) == MPI_SUCCESS) {
            free(sends[i].bytes);
        }
    }
    int over;
    if (survives) {
        /* With the dead among them, MPI may never come to its own end. */
        int well = 1;
        survival.agree(ours, &well);
    } else if (is_orphan()) {
        /* MPI would ask the launcher whether all have come to the end. */
    } else if (MPI_Finalized(&over) == MPI_SUCCESS && !over) {
        MPI_Comm_free(&ours);
        if (is_ours) {
            MPI_Finalize();
        }
    }
}

/* All ranks end at once. */
void sterna_mpi_abort(int code) {
    MPI_Abort(MPI_COMM_WORLD, code);
}
