#include "CSQLiteSnapshot.h"
