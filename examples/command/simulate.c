/* An energy that is a program: Rosenbrock's function over 20.
 *
 *     cc -O2 -o simulate simulate.c
 *     ./simulate --x 0.5 --y 1.5
 *
 * It prints the value and nothing else. What goes wrong is told on standard error and by the exit status.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Return the number that follows an option, or end the program: an energy at a point that was not meant is a wrong
 * result that looks like a right one. */
static double option(int argc, char **argv, const char *name)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], name) == 0) {
            char *end;
            double value = strtod(argv[i + 1], &end);
            if (end == argv[i + 1] || *end != '\0' || !isfinite(value)) {
                fprintf(stderr, "simulate: %s %s: not a finite number\n", name, argv[i + 1]);
                exit(2);
            }
            return value;
        }
    }
    fprintf(stderr, "simulate: %s is missing; usage: simulate --x NUMBER --y NUMBER\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
    double x = option(argc, argv, "--x");
    double y = option(argc, argv, "--y");
    double valley = y - x * x;
    /* 17 digits are what a double needs to come back as itself. */
    printf("%.17g\n", ((1.0 - x) * (1.0 - x) + 100.0 * valley * valley) / 20.0);
    return 0;
}
