#include "CNoPQ.h"
