/* What Sterna needs of MPI, behind functions of plain C: handles and constants differ between MPIs, and only their headers know them.
 *
 * Waiting is by looking, with sleeps that grow to a sixteenth of the time waited so far: a rank that waits leaves its core to others, as
 * while the first one trains, and loses little by it. Where ranks share cores they sleep from the start, since the system lets those that
 * slept go first and those that gave way last. A neighbour, a rank on the same machine, that is gone ends the wait. */
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { FALLEN = -1, NO_MEMORY = -2 };

/* Seconds of looking without a sleep where ranks have cores of their own, of the shortest and the longest sleep, and between two looks at
 * the neighbours. */
static const double AWAKE = 200e-6, SHORTEST_SLEEP = 50e-6, LONGEST_SLEEP = 1e-3, NEIGHBOURS = 0.1;

static MPI_Comm ours;

/* What is on its way to other ranks, in copies that stay until it has left. */
enum { SENDS = 256 };
static struct send {
    MPI_Request request;
    void *bytes;
    int room;
} sends[SENDS];
static int next_send;

static const int64_t *neighbours;
static int neighbour_count;
static int share_cores;
static volatile sig_atomic_t asked;

static void hear_signal(int number) {
    (void)number;
    asked = 1;
}

/* Begins, with calls from any thread but one at a time; SIGUSR1 asks to stop from now on, since launchers pass it on. */
int sterna_mpi_start(int *rank, int *ranks) {
    int given;
    int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given);
    if (code == MPI_SUCCESS) {
        code = MPI_Comm_dup(MPI_COMM_WORLD, &ours);
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    for (int i = 0; i < SENDS; i++) {
        sends[i].request = MPI_REQUEST_NULL;
    }
    MPI_Comm_set_errhandler(ours, MPI_ERRORS_RETURN);
    MPI_Comm_rank(ours, rank);
    MPI_Comm_size(ours, ranks);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = hear_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, NULL);
    return given < MPI_THREAD_SERIALIZED ? MPI_ERR_OTHER : MPI_SUCCESS;
}

int sterna_mpi_is_asked_to_stop(void) {
    return asked;
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

/* Processes of the ranks on this machine; they must stay in memory. */
void sterna_mpi_watch(const int64_t *processes, int count) {
    neighbours = processes;
    neighbour_count = count;
    share_cores = count > sysconf(_SC_NPROCESSORS_ONLN);
}

/* Whether a process is gone. */
int sterna_mpi_is_gone(int64_t process) {
    return kill((pid_t)process, 0) != 0 && errno == ESRCH;
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
    if (waited < AWAKE && !share_cores) {
        sched_yield();
        return MPI_SUCCESS;
    }
    if (now - wait->looked > NEIGHBOURS) {
        wait->looked = now;
        for (int i = 0; i < neighbour_count; i++) {
            if (sterna_mpi_is_gone(neighbours[i])) {
                return FALLEN;
            }
        }
    }
    double sleep = waited / 16 < SHORTEST_SLEEP ? SHORTEST_SLEEP : waited / 16 < LONGEST_SLEEP ? waited / 16 : LONGEST_SLEEP;
    struct timespec time = {0, (long)(1e9 * sleep)};
    nanosleep(&time, NULL);
    return MPI_SUCCESS;
}

static int wait_for(MPI_Request *request) {
    struct wait wait = begin_wait();
    for (;;) {
        int done = 0, code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS && !done) {
            code = rest(&wait);
        }
        if (code != MPI_SUCCESS || done) {
            return code;
        }
    }
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
    return MPI_Isend(send->bytes, size, MPI_BYTE, to, kind, ours, &send->request);
}

/* What a rank tells this one next: who, of what kind, and how many bytes; nobody, -1, where there is nothing and it is not waited for. */
int sterna_mpi_next(int waits, int *from, int *kind, int *size) {
    struct wait wait = begin_wait();
    for (;;) {
        MPI_Status status;
        int there = 0, code = MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, ours, &there, &status);
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
    int code = MPI_Irecv(bytes, size, MPI_BYTE, from, kind, ours, &request);
    return code == MPI_SUCCESS ? wait_for(&request) : code;
}

/* So many bytes from each rank to all. */
int sterna_mpi_all(const void *own, int size, void *all) {
    MPI_Request request;
    int code = MPI_Iallgather(own, size, MPI_BYTE, all, size, MPI_BYTE, ours, &request);
    return code == MPI_SUCCESS ? wait_for(&request) : code;
}

/* Bytes of each rank, to their places, on all. */
int sterna_mpi_gather(const void *own, int size, void *all, const int *sizes, const int *places) {
    MPI_Request request;
    int code = MPI_Iallgatherv(own, size, MPI_BYTE, all, sizes, places, MPI_BYTE, ours, &request);
    return code == MPI_SUCCESS ? wait_for(&request) : code;
}

/* The same, on the first rank alone. */
int sterna_mpi_gather_to_first(const void *own, int size, void *all, const int *sizes, const int *places) {
    MPI_Request request;
    int code = MPI_Igatherv(own, size, MPI_BYTE, all, sizes, places, MPI_BYTE, 0, ours, &request);
    return code == MPI_SUCCESS ? wait_for(&request) : code;
}

/* Bytes of the first rank to all. */
int sterna_mpi_from_first(void *bytes, int size) {
    MPI_Request request;
    int code = MPI_Ibcast(bytes, size, MPI_BYTE, 0, ours, &request);
    return code == MPI_SUCCESS ? wait_for(&request) : code;
}

/* All ranks end well; where one has failed, what was told may never be heard. */
void sterna_mpi_end(int failed) {
    for (int i = 0; i < SENDS; i++) {
        if (!failed && wait_for(&sends[i].request) == MPI_SUCCESS) {
            free(sends[i].bytes);
        }
    }
    MPI_Comm_free(&ours);
    MPI_Finalize();
}

/* All ranks end at once. */
void sterna_mpi_abort(int code) {
    MPI_Abort(MPI_COMM_WORLD, code);
}
