/* What Sterna needs of MPI, behind functions of plain C: handles and constants differ between MPIs, and only their headers know them.
 *
 * Waiting is by looking, with sleeps that grow to a sixteenth of the time waited so far: a rank that waits leaves its core to others, as
 * while the first one trains, and loses little by it. A neighbour, a rank on the same machine, that is gone ends the wait. */
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

enum { FALLEN = -1 };

/* Seconds of looking without a sleep, of the longest sleep, and between two looks at the neighbours. */
static const double AWAKE = 200e-6, LONGEST_SLEEP = 1e-3, NEIGHBOURS = 0.1;

static MPI_Comm ours;
static const int64_t *neighbours;
static int neighbour_count;
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
}

/* Whether a process is gone. */
int sterna_mpi_is_gone(int64_t process) {
    return kill((pid_t)process, 0) != 0 && errno == ESRCH;
}

static int wait_for(MPI_Request *request) {
    double begin = MPI_Wtime(), looked = begin;
    for (;;) {
        int done = 0, code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS || done) {
            return code;
        }
        double now = MPI_Wtime(), waited = now - begin;
        if (waited < AWAKE) {
            sched_yield();
            continue;
        }
        if (now - looked > NEIGHBOURS) {
            looked = now;
            for (int i = 0; i < neighbour_count; i++) {
                if (sterna_mpi_is_gone(neighbours[i])) {
                    return FALLEN;
                }
            }
        }
        double sleep = waited / 16 < LONGEST_SLEEP ? waited / 16 : LONGEST_SLEEP;
        struct timespec time = {0, (long)(1e9 * sleep)};
        nanosleep(&time, NULL);
    }
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

/* All ranks end well. */
void sterna_mpi_end(void) {
    MPI_Comm_free(&ours);
    MPI_Finalize();
}

/* All ranks end at once. */
void sterna_mpi_abort(int code) {
    MPI_Abort(MPI_COMM_WORLD, code);
}
