/* Makes one rank of a job fail at a chosen moment. Loaded before the program's libraries
 * (LD_PRELOAD), it knows the moments at which the program calls the system; as a plugin, those at
 * which it calls a hook. In the environment:
 *
 *   FAULT_RANK    which rank; of ranks that ddpsim starts, the number of the fork; or all
 *   FAULT_MOMENT  rendezvous, connect, output, hook:N, the N-th call of the hook, or collective:N,
 *                 of a fake GPU; throughout, of an outsider
 *   FAULT_KIND    kill, stop, segfault, exit; threads: from then on no thread can be started; disk:
 *                 from then on nothing can be written to plain files;
 *                 outsider: at hook:N, a stranger tries all ports that the rank had waited at;
 *                 throughout, in every rank, whenever it begins to wait for connections, a stranger
 *                 makes some for 0.4 s, the first before the rank goes on
 *   FAULT_LOG     a file that gets the time of the fault, in seconds since 1970
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ddpsim_plugin.h"

static int forks = 0;  /* by this process, or, in a rank, by its parent before */
static int forked = 0; /* this process is a rank that ddpsim started */
static int no_threads = 0;
static int no_space = 0;
static long hooked = 0;
static long collectives = 0;
static struct sockaddr_in doors[16]; /* where this process has waited for connections */
static int door_count = 0;

static const char* wanted(const char* name) {
  const char* value = getenv(name);
  return value == NULL ? "" : value;
}

static int is_the_rank(void) {
  if (strcmp(program_invocation_short_name, "ddpsim") != 0) return 0;
  if (strcmp(wanted("FAULT_RANK"), "all") == 0) return 1;
  const char* placed = getenv("RANK");
  if (placed == NULL && !forked) return 0;
  return atoi(wanted("FAULT_RANK")) == (placed != NULL ? atoi(placed) : forks - 1);
}

static void note_time(void) {
  FILE* log = fopen(wanted("FAULT_LOG"), "w");
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (log == NULL) return;
  fprintf(log, "%ld.%09ld\n", (long)now.tv_sec, now.tv_nsec);
  fclose(log);
}

static void disturb_doors(void);

static void fail(void) {
  const char* kind = wanted("FAULT_KIND");
  note_time();
  if (strcmp(kind, "threads") == 0) no_threads = 1;
  if (strcmp(kind, "kill") == 0) kill(getpid(), SIGKILL);
  if (strcmp(kind, "stop") == 0) kill(getpid(), SIGSTOP);
  if (strcmp(kind, "segfault") == 0) raise(SIGSEGV);
  if (strcmp(kind, "exit") == 0) exit(0);
  if (strcmp(kind, "disk") == 0) no_space = 1;
  if (strcmp(kind, "outsider") == 0) disturb_doors();
}

static void reached(const char* moment) {
  if (strcmp(moment, wanted("FAULT_MOMENT")) == 0 && is_the_rank()) fail();
}

static void hook(void* state, const ddpsim_gradient* gradient) {
  (void)state;
  const char* moment = wanted("FAULT_MOMENT");
  if (strncmp(moment, "hook:", 5) != 0 || gradient->rank != atoi(wanted("FAULT_RANK"))) return;
  if (++hooked == atol(moment + 5)) fail();
}

/* A fake GPU calls this before each collective. */
void ddpsim_fault_at_collective(void) {
  const char* moment = wanted("FAULT_MOMENT");
  if (strncmp(moment, "collective:", 11) != 0 || !is_the_rank()) return;
  if (++collectives == atol(moment + 11)) fail();
}

DDPSIM_PLUGIN(registry) {
  registry->add_gradient_hook(registry, "fault", hook, NULL);
}

pid_t fork(void) {
  pid_t (*real)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
  ++forks;
  const pid_t child = real();
  if (child == 0) forked = 1;
  return child;
}

/* What a rank does before it goes to meet the others. */
sighandler_t signal(int number, sighandler_t handler) {
  sighandler_t (*real)(int, sighandler_t) =
      (sighandler_t(*)(int, sighandler_t))dlsym(RTLD_NEXT, "signal");
  if (number == SIGPIPE && handler == SIG_IGN) reached("rendezvous");
  return real(number, handler);
}

/* Connects to `address` for 0.4 s and says what no rank would: nothing, garbage, half a greeting, a
 * greeting without a proof; then it resets the connection, or leaves it open. */
static void* disturb(void* address) {
  static const char* words[] = {
      "", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "ddpsim01half",
      "ddpsim01aaaabbbbccccdddddddddddddddddddddddddddddddd"};
  struct timespec begun, now;
  clock_gettime(CLOCK_MONOTONIC, &begun);
  for (int visit = 0;; ++visit) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec - begun.tv_sec + 1e-9 * (double)(now.tv_nsec - begun.tv_nsec) > 0.4) break;
    const int guest = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(guest, address, sizeof(struct sockaddr_in)) == 0) {
      const char* word = words[visit % 4];
      if (send(guest, word, strlen(word), MSG_NOSIGNAL) >= 0 && visit == 0) note_time();
    }
    const struct linger now_or_never = {1, 0};
    if (visit % 8 == 7 && visit < 800) continue;
    setsockopt(guest, SOL_SOCKET, SO_LINGER, &now_or_never, sizeof now_or_never);
    close(guest);
    usleep(500);
  }
  free(address);
  return NULL;
}

static void disturb_doors(void) {
  for (int door = 0; door < door_count; ++door) {
    const int guest = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(guest, (struct sockaddr*)&doors[door], sizeof doors[door]) == 0)
      send(guest, "xxxxxxxx", 8, MSG_NOSIGNAL);
    close(guest);
  }
}

int listen(int socket, int backlog) {
  int (*real)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "listen");
  const int result = real(socket, backlog);
  reached("connect");
  if (strcmp(wanted("FAULT_KIND"), "outsider") != 0 || backlog == 1) return result; /* 1: Gloo's */
  if (strcmp(wanted("FAULT_MOMENT"), "throughout") != 0) {
    socklen_t length = sizeof doors[0];
    if (door_count < 16 && getsockname(socket, (struct sockaddr*)&doors[door_count], &length) == 0)
      ++door_count;
    return result;
  }
  struct sockaddr_in* address = calloc(1, sizeof *address);
  socklen_t size = sizeof *address;
  pthread_t thread;
  if (getsockname(socket, (struct sockaddr*)address, &size) == 0 &&
      pthread_create(&thread, NULL, disturb, address) == 0) {
    pthread_detach(thread);
    usleep(100000);
  }
  return result;
}

/* What is written to a file gets its name when it is whole. */
int rename(const char* from, const char* to) {
  int (*real)(const char*, const char*) =
      (int (*)(const char*, const char*))dlsym(RTLD_NEXT, "rename");
  reached("output");
  return real(from, to);
}

ssize_t write(int file, const void* bytes, size_t size) {
  ssize_t (*real)(int, const void*, size_t) =
      (ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
  struct stat status;
  if (!no_space || file <= 2 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
    return real(file, bytes, size);
  errno = ENOSPC;
  return -1;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
  int (*real)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) =
      (int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*))dlsym(RTLD_NEXT,
                                                                                 "pthread_create");
  return no_threads ? EAGAIN : real(thread, attributes, start, argument);
}
